// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/memory_room.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

#include "runtime/base/control_groups.h"
#include "runtime/tensor/memory.h"

namespace lockstep {

namespace fs = std::filesystem;

namespace {

using Bytes = std::optional<std::size_t>;

/// The number with which a file of the kernel's begins; nothing for "max".
Bytes number_in(const fs::path& path) {
  const std::string text = text_of(path);
  std::size_t number = 0;
  const bool found = std::from_chars(text.data(), text.data() + text.size(), number).ec == std::errc();
  return found ? Bytes(number) : std::nullopt;
}

Bytes left_of(Bytes limit, Bytes used) {
  if (!limit || !used) return std::nullopt;
  return *limit - std::min(*limit, *used);
}

/// The bytes of a group's memory that cache files. The kernel gives them up before it refuses memory.
std::size_t file_cache_in(const fs::path& statistics, const std::string& prefix) {
  std::size_t bytes = 0;
  std::istringstream lines(text_of(statistics));
  std::size_t number = 0;
  for (std::string name; lines >> name >> number;) {
    if (name == prefix + "active_file" || name == prefix + "inactive_file") bytes += number;
  }
  return bytes;
}

/// The bytes that a group has taken for good: all but the cache of files.
Bytes used_in(const fs::path& usage, const fs::path& statistics, const std::string& prefix) {
  return left_of(number_in(usage), file_cache_in(statistics, prefix));
}

Bytes least(Bytes a, Bytes b) { return a && b ? std::min(*a, *b) : (a ? a : b); }

Bytes kibibytes_of(const char* file, const std::string& name) {
  std::ifstream lines(file);
  for (std::string key, rest; lines >> key; std::getline(lines, rest)) {
    std::size_t kibibytes = 0;
    if (key == name && lines >> kibibytes) return kibibytes * 1024;
  }
  return std::nullopt;
}

/// A group's limit in version 1.
Bytes old_limit_in(const fs::path& folder) {
  // From here on it means none: it is the largest number of whole pages.
  constexpr std::size_t kNoLimit = std::size_t{1} << 60;
  const Bytes limit = number_in(folder / "memory.limit_in_bytes");
  return limit && *limit < kNoLimit ? limit : std::nullopt;
}

Bytes limit_of(__rlimit_resource_t resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return limit.rlim_cur;
}

}  // namespace

Bytes room_in_groups(const std::string& groups, const fs::path& mount) {
  Bytes room;
  for (const fs::path& folder : control_groups(groups, mount, "memory")) {
    const fs::path statistics = folder / "memory.stat";
    room = least(room, left_of(number_in(folder / "memory.max"), used_in(folder / "memory.current", statistics, "")));
    const Bytes old = old_limit_in(folder);
    if (old) room = least(room, left_of(old, used_in(folder / "memory.usage_in_bytes", statistics, "total_")));
  }
  return room;
}

Bytes whole_memory() {
  Bytes whole = kibibytes_of("/proc/meminfo", "MemTotal:");
  if (whole) *whole += kibibytes_of("/proc/meminfo", "SwapTotal:").value_or(0);
  for (const fs::path& folder : control_groups(text_of("/proc/self/cgroup"), "/sys/fs/cgroup", "memory")) {
    whole = least(whole, least(number_in(folder / "memory.max"), old_limit_in(folder)));
  }
  return whole;
}

MemoryRoom memory_room() {
  const char* const status = "/proc/self/status";
  const Bytes data = left_of(limit_of(RLIMIT_DATA), kibibytes_of(status, "VmData:"));
  return {.machine = kibibytes_of("/proc/meminfo", "MemAvailable:"),
          .group = room_in_groups(text_of("/proc/self/cgroup"), "/sys/fs/cgroup"),
          .address_space = least(data, left_of(limit_of(RLIMIT_AS), kibibytes_of(status, "VmSize:")))};
}

Bytes least_of(const MemoryRoom& room) { return least(least(room.machine, room.group), room.address_space); }

std::string str(const MemoryRoom& room) {
  std::string text;
  const auto add = [&text](Bytes bytes, const char* of_what) {
    if (bytes) text += fmt::format("{}{} MiB {}", text.empty() ? "" : ", ", *bytes >> 20, of_what);
  };
  add(room.machine, "are free on this machine");
  add(room.group, "in its control group (memory.max)");
  add(room.address_space, "of its address space (ulimit -v, -d)");
  return text;
}

std::string memory_facts() {
  return fmt::format("{}; this process holds {} MiB, in use: {}", str(memory_room()),
                     memory_statistics(kCpu).reserved >> 20, memory_users(kCpu));
}

bool has_address_space(std::size_t bytes) {
  static const bool limited = limit_of(RLIMIT_AS).has_value() || limit_of(RLIMIT_DATA).has_value();
  if (!limited) return true;
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory != MAP_FAILED && munmap(memory, bytes) == 0;
}

}  // namespace lockstep
