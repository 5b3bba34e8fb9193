// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/temporary_directory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <vector>

#include "runtime/base/files/durable_file.h"
#include "runtime/base/files/storage_calls.h"
#include "runtime/base/host_name.h"
#include "runtime/base/process.h"

namespace lockstep::checkpoint {
namespace {

constexpr std::string_view kMark = ".tmp-";
constexpr std::chrono::hours kForeignWriterLimit{24};

/// When a process started, as text; "0" where that cannot be seen, "dead" for a process that has ended and only waits
/// for its parent.
std::string start_time(pid_t pid) {
  const std::optional<ProcessFacts> facts = process_facts(pid);
  if (!facts) return "0";
  return facts->state == 'Z' || facts->state == 'X' ? "dead" : std::to_string(facts->started);
}

bool is_running(pid_t pid, const std::string& started) {
  if (!process_exists(pid)) return false;
  const std::string now = start_time(pid);
  return now == "0" || started == "0" || now == started;
}

/// The temporary directories that this process works in. One of its own that is not among them was left over, because
/// its removal failed or an earlier process had the same id.
class InUse {
 public:
  void insert(const std::string& path) {
    const std::lock_guard lock(mutex_);
    paths_.insert(path);
  }
  void erase(const std::string& path) {
    const std::lock_guard lock(mutex_);
    paths_.erase(path);
  }
  bool contains(const std::string& path) const {
    const std::lock_guard lock(mutex_);
    return paths_.contains(path);
  }

 private:
  mutable std::mutex mutex_;
  std::set<std::string> paths_;
};

InUse& in_use() {
  static InUse paths;
  return paths;
}

struct Writer {
  std::string host;
  pid_t pid = 0;
  std::string started;
};

/// The writer that a temporary directory's name tells; none where the name is not of this kind.
std::optional<Writer> writer_of(std::string_view name) {
  const std::size_t mark = name.find(kMark);
  if (!name.starts_with("step-") || mark == std::string_view::npos) return std::nullopt;
  std::string_view host = name.substr(mark + kMark.size());
  std::array<std::string_view, 3> numbers;  // process, start time, serial: behind the host, which may have dots itself
  for (auto number = numbers.rbegin(); number != numbers.rend(); ++number) {
    const std::size_t dot = host.rfind('.');
    if (dot == std::string_view::npos) return std::nullopt;
    *number = host.substr(dot + 1);
    host = host.substr(0, dot);
  }
  Writer writer{std::string(host), 0, std::string(numbers[1])};
  const auto [end, error] = std::from_chars(numbers[0].begin(), numbers[0].end(), writer.pid);
  return error == std::errc() && end == numbers[0].end() && writer.pid > 0 ? std::optional(writer) : std::nullopt;
}

std::string unique_path(const std::string& parent, const std::string& stem) {
  static std::atomic<unsigned> serial{0};
  return fmt::format("{}/{}{}{}.{}.{}.{}", parent, stem, kMark, host_name(), ::getpid(), start_time(::getpid()),
                     serial++);
}

}  // namespace

TemporaryDirectory::TemporaryDirectory(const std::string& parent, const std::string& stem)
    : path_(unique_path(parent, stem)) {
  in_use().insert(path_);
  try {
    make_directory(path_);
  } catch (...) {
    in_use().erase(path_);
    throw;
  }
}

TemporaryDirectory::~TemporaryDirectory() {
  try {
    remove_checkpoint(path_);
  } catch (const StorageError&) {
    // The next save or prune finds it abandoned.
  }
  in_use().erase(path_);
}

bool is_abandoned(const std::string& parent, const std::string& name) {
  const std::optional<Writer> writer = writer_of(name);
  if (!writer) return false;
  const std::string path = parent + "/" + name;
  if (writer->host == host_name()) {
    return writer->pid == ::getpid() ? !in_use().contains(path) : !is_running(writer->pid, writer->started);
  }
  std::error_code error;
  const auto written = std::filesystem::last_write_time(path, error);
  return !error && std::filesystem::file_time_type::clock::now() - written > kForeignWriterLimit;
}

bool is_flat_directory(const std::string& path) {
  const CallUnderWay under_way(StorageOperation::kRead, path);
  std::error_code error;
  const auto is_real = [&error](const std::filesystem::path& each) {
    return std::filesystem::is_directory(std::filesystem::symlink_status(each, error));
  };
  if (!is_real(path)) return false;
  std::filesystem::directory_iterator entry(path, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (is_real(entry->path())) return false;
  }
  return !error;
}

void remove_checkpoint(const std::string& path) {
  if (is_link(path)) return remove_file(path);
  const std::vector<std::string> names = list_directory(path);
  for (const std::string& name : names) {
    std::error_code error;
    if (!std::filesystem::is_directory(std::filesystem::symlink_status(path + "/" + name, error))) continue;
    throw StorageError("cannot delete " + path + ": it holds a directory, " + name + ", that is no checkpoint's",
                       "Move it elsewhere.");
  }
  if (std::ranges::binary_search(names, "manifest.json")) {
    remove_file(path + "/manifest.json");
    sync_directory(path);
  }
  for (const std::string& name : names) {
    if (name != "manifest.json") remove_file(path + "/" + name);
  }
  remove_directory(path);
}

}  // namespace lockstep::checkpoint
