// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/whole_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>

#include "runtime/base/descriptor.h"
#include "runtime/base/host_name.h"

namespace lockstep {

namespace {

/// Whether all of it was written; errno says why not.
bool write_all(int file, std::string_view content) {
  while (!content.empty()) {
    const ssize_t count = ::write(file, content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    content.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

/// Some file systems have no sync, network ones often none for directories, and say so with EINVAL.
bool sync(int file) {
  while (::fsync(file) != 0) {
    if (errno == EINVAL) return true;
    if (errno != EINTR) return false;
  }
  return true;
}

/// Makes a directory's entries durable.
bool sync_directory(const std::filesystem::path& path) {
  const Descriptor directory(::open(path.empty() ? "." : path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return directory && sync(directory.get());
}

/// A name beside `path` for this call alone. It says nothing of the file's own: tools that look for files by parts of
/// their names must not take what a killed process has left for one.
std::filesystem::path temporary_beside(const std::filesystem::path& path) {
  static std::atomic<unsigned> serial{0};
  return path.parent_path() / fmt::format(".{}.{}.{}.tmp", host_name(), ::getpid(), serial++);
}

bool write_and_rename(const std::filesystem::path& path, const std::filesystem::path& temporary,
                      std::string_view content) {
  // Not through a link that somebody has put there.
  ::unlink(temporary.c_str());
  Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file || !write_all(file.get(), content) || !sync(file.get())) return false;
  // A network file system may report a failed write only here.
  if (::close(file.release()) != 0 && errno != EINTR) return false;
  return std::rename(temporary.c_str(), path.c_str()) == 0;
}

}  // namespace

std::error_code write_whole_file(const std::filesystem::path& path, std::string_view content) {
  std::error_code error;  // opening the file says more
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  const std::filesystem::path temporary = temporary_beside(path);
  if (!write_and_rename(path, temporary, content)) {
    error = {errno, std::generic_category()};
    ::unlink(temporary.c_str());
    return error;
  }
  return sync_directory(path.parent_path()) ? std::error_code() : std::error_code(errno, std::generic_category());
}

}  // namespace lockstep
