// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/zip_entries.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <system_error>

#include "runtime/base/error.h"

namespace lockstep::checkpoint {

namespace {

constexpr std::size_t kBlockBytes = 1 << 20;

struct Free {
  void operator()(archive* reader) const { archive_read_free(reader); }
};

[[noreturn]] void refuse_archive(const std::string& path, const std::string& what) {
  throw StorageError(path + ": " + what, "The file is damaged, or no file that torch.save wrote.");
}

/// The library tells of some failures alone that there was one.
std::string reason_of(archive* reader) {
  const char* const reason = archive_error_string(reader);
  return reason != nullptr ? reason : "is no readable archive";
}

std::string content_of(archive* reader, const std::string& path, const std::string& name, std::uint64_t size) {
  std::string content(size, '\0');
  std::size_t at = 0;
  while (at < content.size()) {
    const la_ssize_t count = archive_read_data(reader, content.data() + at, content.size() - at);
    if (count < 0) refuse_archive(path, "entry '" + name + "': " + reason_of(reader));
    if (count == 0) refuse_archive(path, fmt::format("entry '{}' ends after {} of {} bytes", name, at, size));
    at += static_cast<std::size_t>(count);
  }
  // The checksum is compared behind the last byte.
  char more = 0;
  const la_ssize_t end = archive_read_data(reader, &more, 1);
  if (end < 0) refuse_archive(path, "entry '" + name + "': " + reason_of(reader));
  if (end > 0) refuse_archive(path, "entry '" + name + "' is longer than it tells");
  return content;
}

}  // namespace

std::map<std::string, std::string> read_zip_entries(const std::string& path) {
  std::error_code error;
  const std::uint64_t archive_bytes = std::filesystem::file_size(path, error);
  if (error) throw StorageError("cannot read " + path + ": " + error.message());
  const std::unique_ptr<archive, Free> reader(archive_read_new());
  archive_read_support_format_zip_seekable(reader.get());
  if (archive_read_open_filename(reader.get(), path.c_str(), kBlockBytes) != ARCHIVE_OK) {
    refuse_archive(path, reason_of(reader.get()));
  }
  std::map<std::string, std::string> entries;
  std::uint64_t left = archive_bytes;
  while (true) {
    archive_entry* entry = nullptr;
    const int status = archive_read_next_header(reader.get(), &entry);
    if (status == ARCHIVE_EOF) return entries;
    if (status < ARCHIVE_WARN) refuse_archive(path, reason_of(reader.get()));
    const char* const full = archive_entry_pathname(entry);
    if (full == nullptr || archive_entry_filetype(entry) != AE_IFREG) continue;
    std::string name = full;
    name.erase(0, name.find('/') + 1);
    if (archive_entry_size_is_set(entry) == 0) refuse_archive(path, "entry '" + name + "' does not tell its size");
    const auto size = static_cast<std::uint64_t>(archive_entry_size(entry));
    if (size > left) refuse_archive(path, fmt::format("entry '{}' of {} bytes is larger than the file", name, size));
    left -= size;
    if (!entries.emplace(name, content_of(reader.get(), path, name, size)).second) {
      refuse_archive(path, "two entries are named '" + name + "'");
    }
  }
}

}  // namespace lockstep::checkpoint
