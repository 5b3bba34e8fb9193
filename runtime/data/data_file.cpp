// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/data_file.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "runtime/base/hash.h"
#include "runtime/data/stored_file.h"
#include "runtime/tensor/error.h"

namespace lockstep::data {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kFirstBytes = 4096;

struct stat status_of(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) {
    throw StorageError("cannot read " + path + ": " + std::generic_category().message(errno));
  }
  return status;
}

/// Device and number: they tell a folder, whatever path leads to it.
std::pair<dev_t, ino_t> identity_of(const fs::path& path) {
  const struct stat status = status_of(path);
  return {status.st_dev, status.st_ino};
}

std::int64_t modified_at(const std::string& path) {
  const struct stat status = status_of(path);
  return std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

DataFile look_at_folder(const std::string& path) {
  DataFile folder{.path = path, .modified = modified_at(path)};
  std::vector<std::string> names;
  walk({path}, [&](const fs::directory_entry& entry) {
    names.push_back(entry.path().lexically_relative(path).string());
    // Asking each file for its time would take minutes on a shared disk.
    if (entry.is_directory()) folder.modified = std::max(folder.modified, modified_at(entry.path()));
    if (!entry.is_directory()) ++folder.bytes;
  });
  std::ranges::sort(names);
  Hash128 hash;
  for (const std::string& name : names) hash.update(name + '\0');
  folder.digest = hash.hex();
  return folder;
}

}  // namespace

void walk(const std::vector<fs::path>& path, const std::function<void(const fs::directory_entry&)>& take) {
  std::vector<std::pair<dev_t, ino_t>> around;
  for (const fs::path& folder : path) {
    around.push_back(identity_of(folder));
    if (std::ranges::count(around, around.back()) > 1) return;
  }
  const std::size_t above = around.size();
  auto entries = fs::recursive_directory_iterator(path.back(), fs::directory_options::follow_directory_symlink);
  for (; entries != fs::recursive_directory_iterator(); ++entries) {
    take(*entries);
    if (!entries->is_directory()) continue;
    around.resize(above + static_cast<std::size_t>(entries.depth()));
    const auto identity = identity_of(entries->path());
    if (std::ranges::find(around, identity) != around.end()) entries.disable_recursion_pending();
    around.push_back(identity);
  }
}

DataFile look_at(const std::string& path) {
  try {
    if (fs::is_directory(path)) return look_at_folder(path);
  } catch (const fs::filesystem_error& error) {
    throw StorageError("cannot list " + path + ": " + error.what());
  }
  const StoredFile file(path);
  std::array<std::byte, kFirstBytes> buffer;
  const auto first = std::span(buffer).first(std::min(file.size(), kFirstBytes));
  file.read(0, first);
  Hash128 hash;
  hash.update(first);
  return {.path = path, .bytes = file.size(), .modified = modified_at(path), .digest = hash.hex()};
}

std::vector<std::string> changes(const std::vector<DataFile>& before, const std::vector<DataFile>& now) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < std::min(before.size(), now.size()); ++i) {
    const bool folder = fs::is_directory(now[i].path);
    if (before[i].bytes != now[i].bytes) {
      lines.push_back(
          fmt::format("{}: {} -> {} {}", now[i].path, before[i].bytes, now[i].bytes, folder ? "files" : "bytes"));
    } else if (before[i].digest != now[i].digest) {
      lines.push_back(now[i].path + (folder ? ": names of its files differ" : ": its first bytes differ"));
    } else if (before[i].modified != now[i].modified) {
      lines.push_back(now[i].path + ": was written again");
    }
  }
  return lines;
}

}  // namespace lockstep::data
