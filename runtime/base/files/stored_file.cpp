// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/files/stored_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>

#include "runtime/base/error.h"

namespace lockstep {

namespace {

std::string reason() { return std::generic_category().message(errno); }

}  // namespace

StoredFile::StoredFile(std::string path)
    : path_(std::move(path)), file_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  struct stat status {};
  if (!file_ || fstat(file_.get(), &status) != 0) throw StorageError("cannot open " + path_ + ": " + reason());
  if (!S_ISREG(status.st_mode)) throw StorageError("cannot read " + path_ + ": it is no regular file");
  size_ = static_cast<std::uint64_t>(status.st_size);
}

void StoredFile::read(std::uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t count = pread(file_.get(), out.data(), out.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw StorageError(fmt::format("cannot read {} at byte {}: {}", path_, offset, reason()));
    if (count == 0) {
      throw StorageError(
          fmt::format("{} is too short: expected {} bytes, found {}", path_, offset + out.size(), offset),
          "The file is damaged, incomplete or changed since it was opened.");
    }
    offset += static_cast<std::uint64_t>(count);
    out = out.subspan(static_cast<std::size_t>(count));
  }
}

std::string StoredFile::read_text(std::uint64_t most) const {
  if (size_ > most) {
    throw StorageError(fmt::format("{} is too long: expected at most {} bytes, found {}", path_, most, size_));
  }
  std::string text(size_, '\0');
  read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace lockstep
