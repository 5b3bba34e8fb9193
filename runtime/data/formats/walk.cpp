// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/walk.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "runtime/base/error.h"

namespace lockstep::data {

namespace {

namespace fs = std::filesystem;

/// Device and number: they tell a folder, whatever path leads to it.
std::pair<dev_t, ino_t> identity_of(const fs::path& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) {
    throw StorageError("cannot read " + path.string() + ": " + std::generic_category().message(errno));
  }
  return {status.st_dev, status.st_ino};
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

}  // namespace lockstep::data
