// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/files/durable_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "runtime/base/files/storage_calls.h"
#include "runtime/base/files/storage_faults.h"
#include "runtime/base/files/sync.h"

namespace lockstep {
namespace {

using enum StorageOperation;

std::string advice_for(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return "Free space there, lower checkpoint.keep, or choose another --run-dir. What was saved before is intact.";
    case EIO:
      return "The device reports a failure: see the system's log, or choose another --run-dir. What was saved before "
             "is left as it is.";
    case EACCES:
    case EPERM:
    case EROFS:
      return "Choose a --run-dir that this user may read and write.";
    case ENOENT:
      return "Check the path.";
    case EMFILE:
    case ENFILE:
      return "Too many files are open: raise the limit (ulimit -n).";
    default:
      return {};
  }
}

[[noreturn]] void fail(StorageOperation operation, const std::string& path, int error) {
  throw FileError(fmt::format("cannot {} {}: {}", verb_of(operation), path, std::generic_category().message(error)),
                  advice_for(error), error);
}

/// Makes a system call until no signal interrupts it. `call` gets the most bytes it may transfer. Returns what the call
/// returned, or -errno.
template <class Call>
ssize_t unwatched_attempt(StorageOperation operation, const std::string& path, Call&& call) {
  for (;;) {
    const StorageFault fault = fault_before(operation, path);
    const ssize_t result = fault.error == 0 ? static_cast<ssize_t>(call(fault.at_most)) : -1;
    if (result >= 0) return result;
    const int error = fault.error == 0 ? errno : fault.error;
    if (error != EINTR) return -error;
  }
}

/// As unwatched_attempt(), and a pending call for oldest_pending_call() until `call` returns.
template <class Call>
ssize_t attempt(StorageOperation operation, const std::string& path, Call&& call) {
  const CallUnderWay under_way(operation, path);
  return unwatched_attempt(operation, path, call);
}

template <class Call>
ssize_t require(StorageOperation operation, const std::string& path, Call&& call) {
  const ssize_t result = attempt(operation, path, call);
  if (result < 0) fail(operation, path, static_cast<int>(-result));
  return result;
}

Descriptor open_file(const std::string& path, int flags) {
  return Descriptor(static_cast<int>(
      require(kOpen, path, [&](std::size_t) { return ::open(path.c_str(), flags | O_CLOEXEC, 0666); })));
}

/// Whether `look`, a call of ::stat or ::lstat for `path`, finds something there.
template <class Look>
bool exists(const std::string& path, Look&& look) {
  const ssize_t result = attempt(kRead, path, [&](std::size_t) { return look(); });
  if (result == -ENOENT || result == -ENOTDIR) return false;
  if (result < 0) fail(kRead, path, static_cast<int>(-result));
  return true;
}

bool is_directory(const std::string& path) {
  struct stat status {};
  return exists(path, [&] { return ::stat(path.c_str(), &status); }) && S_ISDIR(status.st_mode);
}

void close_file(const std::string& path, Descriptor file) {
  // An interrupted close has closed the descriptor: a second one might close somebody else's.
  const int number = file.release();
  require(kClose, path, [&](std::size_t) { return ::close(number) < 0 && errno != EINTR ? -1 : 0; });
}

}  // namespace

bool FileError::transient() const noexcept {
  return error_ == ENOSPC || error_ == EDQUOT || error_ == EIO || error_ == EAGAIN || error_ == EINTR ||
         error_ == ETIMEDOUT || error_ == ESTALE || error_ == ENFILE || error_ == EMFILE;
}

OutputFile::OutputFile(std::string path)
    : path_(std::move(path)), file_(open_file(path_, O_WRONLY | O_CREAT | O_EXCL)) {}

void OutputFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = require(kWrite, path_, [&](std::size_t at_most) {
      return ::write(file_.get(), bytes.data(), std::min(bytes.size(), at_most));
    });
    if (written == 0) fail(kWrite, path_, EIO);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void OutputFile::sync_and_close() {
  require(kSync, path_, [&](std::size_t) { return sync_descriptor(file_.get()); });
  close_file(path_, std::move(file_));
}

AppendFile::AppendFile(std::string path) : path_(std::move(path)) {
  const ssize_t file = unwatched_attempt(
      kOpen, path_, [&](std::size_t) { return ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666); });
  if (file < 0) fail(kOpen, path_, static_cast<int>(-file));
  file_.reset(static_cast<int>(file));
}

std::size_t AppendFile::write(std::span<const std::byte> bytes) {
  const ssize_t written = unwatched_attempt(kWrite, path_, [&](std::size_t at_most) {
    return ::write(file_.get(), bytes.data(), std::min(bytes.size(), at_most));
  });
  if (written <= 0 && !bytes.empty()) fail(kWrite, path_, written < 0 ? static_cast<int>(-written) : EIO);
  return static_cast<std::size_t>(written);
}

InputFile::InputFile(std::string path) : path_(std::move(path)), file_(open_file(path_, O_RDONLY | O_NONBLOCK)) {
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) fail(kOpen, path_, errno);
  if (!S_ISREG(status.st_mode)) throw StorageError(path_ + " is not a regular file");
  size_ = static_cast<std::uint64_t>(status.st_size);
}

InputFile::InputFile(std::string path, std::uint64_t begin, std::uint64_t size) : InputFile(std::move(path)) {
  if (begin > size_ || size > size_ - begin) {
    throw StorageError(fmt::format("{} is truncated: it ends at byte {}, {} from byte {} on were expected", path_,
                                   size_, size, begin));
  }
  begin_ = begin;
  size_ = size;
}

void InputFile::read(std::uint64_t offset, std::span<std::byte> bytes) const {
  if (offset > size_ || bytes.size() > size_ - offset) {
    throw StorageError(fmt::format("{} is truncated: it ends at byte {}, at least {} were expected", path_,
                                   begin_ + size_, begin_ + offset + bytes.size()));
  }
  offset += begin_;
  const std::uint64_t end = offset + bytes.size();
  while (!bytes.empty()) {
    const ssize_t got = require(kRead, path_, [&](std::size_t at_most) {
      return ::pread(file_.get(), bytes.data(), std::min(bytes.size(), at_most), static_cast<off_t>(offset));
    });
    if (got == 0) {
      throw StorageError(
          fmt::format("{} is truncated: it ends at byte {}, at least {} were expected", path_, offset, end));
    }
    offset += static_cast<std::uint64_t>(got);
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

std::string read_file(const std::string& path, std::uint64_t limit) { return read_file(InputFile(path), limit); }

std::string read_file(const InputFile& file, std::uint64_t limit) {
  if (file.size() > limit) {
    throw StorageError(fmt::format("{} has {} bytes, at most {} were expected", file.path(), file.size(), limit));
  }
  std::string content(file.size(), '\0');
  file.read(0, std::as_writable_bytes(std::span(content)));
  return content;
}

void make_directories(const std::string& path) {
  if (is_directory(path)) return;
  const std::string parent = (std::filesystem::path(path) / "..").lexically_normal().string();
  const ssize_t result = attempt(kMakeDirectory, path, [&](std::size_t) { return ::mkdir(path.c_str(), 0777); });
  if (result == -ENOENT && parent != path) {
    make_directories(parent);
    return make_directories(path);
  }
  // Another process may have been faster.
  if (result < 0 && !(result == -EEXIST && is_directory(path))) fail(kMakeDirectory, path, static_cast<int>(-result));
  try {
    sync_directory(parent);
  } catch (const FileError& error) {
    // A second try would take the directory's name for durable. A directory that has content by now stays.
    if (error.transient()) attempt(kRemoveDirectory, path, [&](std::size_t) { return ::rmdir(path.c_str()); });
    throw;
  }
}

void make_directory(const std::string& path) {
  require(kMakeDirectory, path, [&](std::size_t) { return ::mkdir(path.c_str(), 0777); });
}

void remove_directory(const std::string& path) {
  const ssize_t result = attempt(kRemoveDirectory, path, [&](std::size_t) { return ::rmdir(path.c_str()); });
  if (result < 0 && result != -ENOENT) fail(kRemoveDirectory, path, static_cast<int>(-result));
}

void remove_file(const std::string& path) {
  const ssize_t result = attempt(kUnlink, path, [&](std::size_t) { return ::unlink(path.c_str()); });
  if (result < 0 && result != -ENOENT) fail(kUnlink, path, static_cast<int>(-result));
}

bool rename_directory(const std::string& from, const std::string& to) {
  const ssize_t result = attempt(kRename, from, [&](std::size_t) { return std::rename(from.c_str(), to.c_str()); });
  if (result == 0) return true;
  if (result == -ENOTEMPTY || result == -EEXIST || result == -ENOTDIR) return false;
  fail(kRename, from + " to " + to, static_cast<int>(-result));
}

void rename_to_free_name(const std::string& from, const std::string& to) {
  require(kRename, from, [&](std::size_t) { return std::rename(from.c_str(), to.c_str()); });
}

bool is_link(const std::string& path) {
  struct stat status {};
  return exists(path, [&] { return ::lstat(path.c_str(), &status); }) && S_ISLNK(status.st_mode);
}

void sync_directory(const std::string& path) {
  const Descriptor directory = open_file(path, O_RDONLY | O_DIRECTORY);
  require(kSync, path, [&](std::size_t) { return sync_descriptor(directory.get()); });
}

std::vector<std::string> list_directory(const std::string& path) {
  const CallUnderWay under_way(kRead, path);
  std::vector<std::string> names;
  std::error_code error;
  do {
    names.clear();
    std::filesystem::directory_iterator entry(path, error);
    for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
      names.push_back(entry->path().filename().string());
    }
  } while (error == std::errc::interrupted);
  if (error && error.value() != ENOENT) fail(kRead, path, error.value());
  std::ranges::sort(names);
  return names;
}

}  // namespace lockstep
