// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/shim/watched_files.h"

#include <fcntl.h>

#include <sstream>
#include <utility>

namespace lockstep::faults {

namespace {

constexpr const char* kCheckpointMark = ".tmp-";
constexpr const char* kEvents = "events.out.tfevents.";

std::string stable_part(const std::string& part) {
  const std::size_t mark = part.find(kCheckpointMark);
  if (mark != std::string::npos) return part.substr(0, mark).append(kCheckpointMark).append("*");
  if (part.starts_with(".") && part.ends_with(".tmp")) return ".*.tmp";
  if (part.starts_with(kEvents)) return std::string(kEvents).append("*");
  return part;
}

}  // namespace

WatchedFiles::WatchedFiles(std::string folder) : folder_(std::move(folder)) {}

std::string WatchedFiles::below(const char* path) const {
  if (folder_.empty() || path == nullptr) return {};
  const std::string_view whole = path;
  if (!whole.starts_with(folder_)) return {};
  std::string_view rest = whole.substr(folder_.size());
  if (!rest.empty() && rest.front() != '/') return {};
  while (rest.starts_with('/')) rest.remove_prefix(1);
  while (rest.ends_with('/')) rest.remove_suffix(1);
  return rest.empty() ? "." : std::string(rest);
}

std::string WatchedFiles::below(int directory, const char* path) const {
  if (path == nullptr || path[0] == '/' || directory == AT_FDCWD) return below(path);
  const std::string parent = of(directory);
  if (parent.empty()) return {};
  return parent == "." ? path : parent + "/" + path;
}

std::string WatchedFiles::of(int descriptor) const {
  const auto index = static_cast<std::size_t>(descriptor);
  if (descriptor < 0 || index >= kMost || !watched_[index]) return {};
  const std::lock_guard lock(mutex_);
  return paths_[index];
}

void WatchedFiles::opened(int descriptor, const std::string& path) {
  const auto index = static_cast<std::size_t>(descriptor);
  if (descriptor < 0 || index >= kMost) return;
  const std::lock_guard lock(mutex_);
  paths_[index] = path;
  watched_[index] = true;
}

void WatchedFiles::closed(int descriptor) {
  const auto index = static_cast<std::size_t>(descriptor);
  if (descriptor < 0 || index >= kMost) return;
  watched_[index] = false;
}

std::string stable_name(const std::string& path) {
  std::istringstream parts(path);
  std::string result;
  for (std::string part; std::getline(parts, part, '/');) {
    if (!result.empty()) result.push_back('/');
    result.append(stable_part(part));
  }
  return result;
}

}  // namespace lockstep::faults
