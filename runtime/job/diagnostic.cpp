// SPDX-License-Identifier: Apache-2.0
#include "runtime/job/diagnostic.h"

namespace lockstep::job {

namespace {

bool is_inside(const std::string& field, const std::string& path) {
  return field == path || (field.starts_with(path) && (field[path.size()] == '.' || field[path.size()] == '['));
}

}  // namespace

std::string Position::str() const {
  if (line == 0) return source;
  return source + ":" + std::to_string(line) + ":" + std::to_string(column);
}

std::string Diagnostic::str() const {
  const std::string place = position.str();
  return (place.empty() ? "" : place + ": ") + (path.empty() ? "" : path + ": ") + message;
}

std::string str(const Diagnostics& diagnostics) {
  std::string lines;
  for (const Diagnostic& diagnostic : diagnostics) lines += (lines.empty() ? "" : "\n") + diagnostic.str();
  if (diagnostics.size() >= kMaxErrors) lines += "\nThere may be more errors behind these.";
  return lines;
}

const Position& Locations::find(std::string path) const {
  static const Position kNowhere;
  while (!path.empty() && !positions_.contains(path)) path = parent_path(path);
  const auto found = positions_.find(path);
  return found == positions_.end() ? kNowhere : found->second;
}

void Locations::erase(const std::string& path) {
  std::erase_if(positions_, [&](const auto& entry) { return is_inside(entry.first, path); });
}

void Locations::relocate(const std::string& path, const Position& position) {
  record(path, position);
  for (auto& [key, place] : positions_) {
    if (is_inside(key, path)) place = position;
  }
}

}  // namespace lockstep::job
