// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record/line_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <span>
#include <system_error>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/files/retry.h"

namespace lockstep::train {

void LineFile::open() {
  AppendFile file(path_);
  struct stat status {};
  if (fstat(file.descriptor(), &status) != 0) {
    throw FileError("cannot look at " + path_ + ": " + std::generic_category().message(errno), "", errno);
  }
  if (!S_ISREG(status.st_mode)) {
    throw FileError(path_ + " is no regular file", "Move it elsewhere, or choose another --run-dir.", EINVAL);
  }
  char last = '\n';
  const off_t end = lseek(file.descriptor(), 0, SEEK_END);
  within_line_ = end > 0 && pread(file.descriptor(), &last, 1, end - 1) == 1 && last != '\n';
  file_ = std::move(file);
}

std::size_t LineFile::write(std::string_view lines) {
  require_in_place();
  if (!file_) open();
  // Half a line that a full disk has left stays by itself.
  if (within_line_) file_->write(std::as_bytes(std::span("\n", 1)));
  within_line_ = false;
  return file_->write(std::as_bytes(std::span(lines)));
}

void LineFile::append(std::string_view lines) {
  while (!lines.empty()) lines.remove_prefix(with_retries({}, [&] { return write(lines); }));
}

void LineFile::sync() const {
  while (file_ && ::fdatasync(file_->descriptor()) != 0 && errno == EINTR) continue;
}

void LineFile::require_in_place() const {
  if (in_place()) return;
  throw StorageError(path() + " was deleted or replaced while the run was writing it",
                     "Leave a run's directory alone while it trains. Run again, or choose another --run-dir.");
}

bool LineFile::in_place() const {
  struct stat mine {};
  struct stat there {};
  const std::string place = file_ ? path_ : std::filesystem::path(path_).parent_path().string();
  // A disk that fails says nothing of the file.
  if (stat(place.c_str(), &there) != 0) return errno != ENOENT && errno != ENOTDIR;
  return !file_ || fstat(file_->descriptor(), &mine) != 0 ||
         (mine.st_dev == there.st_dev && mine.st_ino == there.st_ino);
}

}  // namespace lockstep::train
