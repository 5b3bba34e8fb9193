// SPDX-License-Identifier: Apache-2.0
#include "comm/group/shared_memory/shared_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <string>
#include <system_error>

#include "runtime/base/files/locked_file.h"

namespace lockstep::comm {

namespace {

using Kind = MemoryName::Kind;

constexpr const char* kFolder = "/dev/shm";
constexpr const char* kPrefix = "lockstep.";
/// A file without its final name that is older gets none any more.
constexpr std::chrono::minutes kSettled{1};

/// Files whose makers were killed before all had opened them.
void remove_abandoned() {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix) || !entry.is_regular_file(ignored)) continue;
    // A recent .new file is not abandoned: its maker has yet to lock it.
    std::error_code unknown;
    const auto age = std::filesystem::file_time_type::clock::now() - entry.last_write_time(unknown);
    if (name.ends_with(".new") && (unknown || age < kSettled)) continue;
    if (const Descriptor lock = take_lock(entry.path())) std::filesystem::remove(entry.path(), ignored);
  }
}

/// A file that nobody else has; none where there can be none.
Descriptor make(Kind kind, MemoryName& name) {
  if (kind == Kind::kNone) return {};
  if (kind == Kind::kDescriptor) return Descriptor(memfd_create("lockstep", MFD_CLOEXEC));
  remove_abandoned();
  std::random_device random;
  std::snprintf(name.file, sizeof name.file, "/%s%d.%08x", kPrefix, getpid(), random());
  return make_locked_file(std::string(kFolder) + name.file);
}

Descriptor open_again(const MemoryName& name) {
  if (name.kind == Kind::kFile) return Descriptor(shm_open(name.file, O_RDWR | O_CLOEXEC, 0));
  if (name.kind == Kind::kNone) return {};
  const std::string path = fmt::format("/proc/{}/fd/{}", name.process, name.descriptor);
  return Descriptor(open(path.c_str(), O_RDWR | O_CLOEXEC));
}

bool is_that_of(const MemoryName& name, const Descriptor& file) {
  struct stat status {};
  return fstat(file.get(), &status) == 0 && status.st_dev == name.device && status.st_ino == name.inode;
}

}  // namespace

SharedFile::SharedFile(Kind kind, std::size_t bytes) {
  file_ = make(kind, name_);
  if (!file_) return;
  name_.descriptor = file_.get();
  name_.kind = kind;
  name_.process = getpid();
  struct stat status {};
  if (ftruncate(file_.get(), static_cast<off_t>(bytes)) != 0 || fstat(file_.get(), &status) != 0) return;
  name_.device = status.st_dev;
  name_.inode = status.st_ino;
}

SharedFile::~SharedFile() {
  if (name_.kind == Kind::kFile) shm_unlink(name_.file);
}

Mapping::Mapping(const MemoryName& name, std::size_t bytes) {
  const Descriptor file = open_again(name);
  if (!file || !is_that_of(name, file)) return;
  void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (data == MAP_FAILED) return;
  data_ = static_cast<std::byte*>(data);
  bytes_ = bytes;
}

Mapping::~Mapping() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

bool populate(std::byte* data, std::size_t bytes) {
  if (bytes == 0 || madvise(data, bytes, MADV_POPULATE_WRITE) == 0) return true;
  if (errno != EINVAL) return false;
  std::memset(data, 0, bytes);  // a kernel before 5.14
  return true;
}

std::int64_t free_bytes(Kind kind) {
  if (kind == Kind::kFile) {
    struct statvfs disk {};
    if (statvfs(kFolder, &disk) != 0) return 0;
    return static_cast<std::int64_t>(disk.f_bavail) * static_cast<std::int64_t>(disk.f_frsize);
  }
  std::ifstream lines("/proc/meminfo");
  for (std::string key, rest; lines >> key; std::getline(lines, rest)) {
    std::int64_t kibibytes = 0;
    if (key == "MemAvailable:" && lines >> kibibytes) return kibibytes * 1024;
  }
  return std::numeric_limits<std::int64_t>::max();
}

}  // namespace lockstep::comm
