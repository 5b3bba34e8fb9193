// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/history/varied_settings.h"

#include <algorithm>
#include <cstddef>
#include <set>

#include "runtime/job/differences.h"

namespace lockstep::train {

namespace {

/// Adds to `varied` what differs among the runs of these numbers.
void compare(std::span<const RunRecord> runs, const std::vector<std::size_t>& group, std::vector<Settings>& varied) {
  std::vector<Settings> all;
  for (const std::size_t i : group) all.push_back(job::values_of(*runs[i].job));
  std::set<std::string> paths;
  const auto note = [&](const Settings& one, const Settings& other) {
    for (const auto& [path, value] : one) {
      const auto same = other.find(path);
      if (same == other.end() || same->second != value) paths.insert(path);
    }
  };
  for (const Settings& settings : all) {
    note(settings, all.front());
    note(all.front(), settings);
  }
  std::erase_if(paths, [](const std::string& path) { return path == "name" || path.starts_with("fault["); });
  for (std::size_t i = 0; i < group.size(); ++i) {
    for (const std::string& path : paths) {
      if (const auto value = all[i].find(path); value != all[i].end()) varied[group[i]].insert(*value);
    }
  }
}

/// "lr", "sgd.lr", "optimizer.sgd.lr" for 1, 2, 3 parts.
std::string ending(const std::string& path, int parts) {
  std::size_t at = path.size();
  for (; parts > 0 && at != std::string::npos; --parts) at = at == 0 ? std::string::npos : path.rfind('.', at - 1);
  return at == std::string::npos ? path : path.substr(at + 1);
}

}  // namespace

std::vector<Settings> varied_settings(std::span<const RunRecord> runs, bool by_name) {
  std::map<std::string, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].job) groups[by_name ? runs[i].job->name() : ""].push_back(i);
  }
  std::vector<Settings> varied(runs.size());
  for (const auto& [name, group] : groups) compare(runs, group, varied);
  return varied;
}

std::map<std::string, std::string> short_names(const std::vector<Settings>& settings) {
  std::set<std::string> paths;
  for (const Settings& of_run : settings) {
    for (const auto& [path, value] : of_run) paths.insert(path);
  }
  std::map<std::string, std::string> names;
  for (const std::string& path : paths) {
    int parts = 1;
    const auto is_taken = [&](const std::string& other) {
      return other != path && ending(other, parts) == ending(path, parts);
    };
    while (ending(path, parts) != path && std::ranges::any_of(paths, is_taken)) ++parts;
    names[path] = ending(path, parts);
  }
  return names;
}

}  // namespace lockstep::train
