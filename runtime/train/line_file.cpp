// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/line_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "runtime/tensor/error.h"

namespace lockstep::train {

namespace {

StorageError cannot_write(const std::filesystem::path& path) {
  return StorageError("cannot write " + path.string() + ": " + std::generic_category().message(errno),
                      "Check the space and the permissions of the run directory.");
}

}  // namespace

LineFile::LineFile(std::filesystem::path path)
    : path_(std::move(path)), file_(open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666)) {
  if (!file_) throw cannot_write(path_);
  struct stat status {};
  if (fstat(file_.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    throw StorageError(path_.string() + " is no regular file", "Move it elsewhere, or choose another --run-dir.");
  }
  // Half a line that a full disk has left stays by itself.
  char last = '\n';
  const off_t end = lseek(file_.get(), 0, SEEK_END);
  if (end > 0 && pread(file_.get(), &last, 1, end - 1) == 1 && last != '\n') pending_.push_back('\n');
}

void LineFile::add(const std::string& line) {
  pending_ += line;
  pending_ += '\n';
}

void LineFile::flush() {
  if (!in_place()) {
    throw StorageError(path_.string() + " was deleted or replaced while the run was writing it",
                       "Leave a run's directory alone while it trains. Run again, or choose another --run-dir.");
  }
  std::size_t written = 0;
  while (written < pending_.size()) {
    const ssize_t count = write(file_.get(), pending_.data() + written, pending_.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw cannot_write(path_);
    written += static_cast<std::size_t>(count);
  }
  pending_.clear();
}

bool LineFile::in_place() const {
  struct stat mine {};
  struct stat there {};
  return fstat(file_.get(), &mine) == 0 && stat(path_.c_str(), &there) == 0 && mine.st_dev == there.st_dev &&
         mine.st_ino == there.st_ino;
}

}  // namespace lockstep::train
