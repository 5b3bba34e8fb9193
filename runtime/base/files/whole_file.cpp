// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/files/whole_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <string>

#include "runtime/base/descriptor.h"
#include "runtime/base/files/sync.h"
#include "runtime/base/host_name.h"
#include "runtime/base/process.h"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".tmp";
constexpr std::chrono::hours kForeignWriterLimit{24};

/// An interrupted call is made again.
Descriptor open_file(const fs::path& path, int flags) {
  int file = -1;
  do {
    file = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
  } while (file < 0 && errno == EINTR);
  return Descriptor(file);
}

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

bool sync(int file) {
  int result = 0;
  do {
    result = sync_descriptor(file);
  } while (result < 0 && errno == EINTR);
  return result == 0;
}

/// Makes a directory's entries durable.
bool sync_directory(const fs::path& path) {
  const Descriptor directory = open_file(path.empty() ? fs::path(".") : path, O_RDONLY | O_DIRECTORY);
  return directory && sync(directory.get());
}

/// A name beside `path` for this call alone. It says nothing of the file's own: tools that look for files by parts of
/// their names must not take what a killed process has left for one.
fs::path temporary_beside(const fs::path& path) {
  static std::atomic<unsigned> serial{0};
  return path.parent_path() / fmt::format(".{}.{}.{}{}", host_name(), ::getpid(), serial++, kSuffix);
}

/// Takes the last dot of `text` and the number behind it away; -1 where there is none.
int take_number(std::string_view& text) {
  const std::size_t dot = text.rfind('.');
  if (dot == std::string_view::npos) return -1;
  const std::string_view digits = text.substr(dot + 1);
  text = text.substr(0, dot);
  int number = -1;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), number);
  return error == std::errc() && end == digits.end() ? number : -1;
}

/// Whether temporary_beside() has made the name, in a process that does not write there any more.
bool is_abandoned(const fs::directory_entry& entry) {
  const std::string name = entry.path().filename().string();
  std::string_view host = name;
  if (!host.starts_with('.') || !host.ends_with(kSuffix)) return false;
  host.remove_prefix(1);
  host.remove_suffix(kSuffix.size());
  const int serial = take_number(host);
  const int writer = take_number(host);
  if (serial < 0 || writer < 1 || host.empty()) return false;
  if (host == host_name()) return writer == ::getpid() || !process_exists(writer);
  std::error_code error;
  const auto written = fs::last_write_time(entry.path(), error);
  return !error && fs::file_time_type::clock::now() - written > kForeignWriterLimit;
}

bool write_and_rename(const fs::path& path, const fs::path& temporary, std::string_view content) {
  // Not through a link that somebody has put there.
  ::unlink(temporary.c_str());
  Descriptor file = open_file(temporary, O_WRONLY | O_CREAT | O_EXCL);
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

void remove_abandoned_files(const fs::path& folder) {
  std::error_code ignored;  // what cannot be removed is in nobody's way
  for (fs::directory_iterator entry(folder, ignored); entry != fs::directory_iterator(); entry.increment(ignored)) {
    if (is_abandoned(*entry)) ::unlink(entry->path().c_str());
  }
}

}  // namespace lockstep
