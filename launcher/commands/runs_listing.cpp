// SPDX-License-Identifier: Apache-2.0
#include "launcher/commands/runs_listing.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/nearest.h"
#include "runtime/train/history/evaluations.h"
#include "runtime/train/history/find_runs.h"
#include "runtime/train/record/eval_result.h"

namespace lockstep::launcher {

using Json = nlohmann::ordered_json;

namespace {

/// What rows are compared by: numbers before texts, and both before nothing.
struct SortKey {
  int kind = 2;
  double number = 0.0;
  std::string text = {};

  static SortKey of(double number) { return std::isnan(number) ? SortKey{} : SortKey{0, number}; }
  static SortKey of(const std::string& text) {
    char* end = nullptr;
    const double number = std::strtod(text.c_str(), &end);
    return !text.empty() && *end == '\0' ? of(number) : SortKey{1, 0.0, text};
  }
  bool operator<(const SortKey& other) const {
    return std::tie(kind, number, text) < std::tie(other.kind, other.number, other.text);
  }
};

const std::vector<std::string> kColumns{"run", "status", "step", "best", "rate", "age"};

SortKey key_of_best(const train::RunRecord& run) {
  if (!run.best) return {};
  return SortKey::of(train::is_better_lower(run.best->metric) ? run.best->value : -run.best->value);
}

/// The path of the setting that a user names by it or by its end; empty where there is none.
std::string setting_named(const std::string& name, const std::vector<train::Settings>& settings) {
  for (const auto& [path, short_name] : train::short_names(settings)) {
    if (path == name || short_name == name) return path;
  }
  return {};
}

SortKey key_of(const RunsListing& listing, std::size_t i, const std::string& column, const std::string& setting) {
  const train::RunRecord& run = listing.runs[i];
  if (column == "run") return {1, 0.0, listing.names[i]};
  if (column == "status") return {1, 0.0, std::string(name_of(run.status))};
  if (column == "step") return SortKey::of(-static_cast<double>(run.step));
  if (column == "best") return key_of_best(run);
  if (column == "rate") return SortKey::of(-run.samples_per_s);
  if (column == "age") return SortKey::of(-run.last_time);
  const auto value = listing.settings[i].find(setting);
  return value == listing.settings[i].end() ? SortKey{} : SortKey::of(value->second);
}

template <class Value>
void permute(std::vector<Value>& values, const std::vector<std::size_t>& order) {
  std::vector<Value> sorted;
  for (const std::size_t i : order) sorted.push_back(std::move(values[i]));
  values = std::move(sorted);
}

}  // namespace

RunsListing list_runs(const std::filesystem::path& folder) {
  RunsListing listing;
  for (const std::filesystem::path& directory : train::find_runs(folder)) {
    const std::string name = directory.lexically_relative(folder).string();
    listing.names.push_back(name == "." ? directory.string() : name);
    listing.runs.push_back(train::read_run(directory));
  }
  listing.settings = train::varied_settings(listing.runs, true);
  return listing;
}

void compare_by(RunsListing& listing, const std::string& metric) {
  for (train::RunRecord& run : listing.runs) {
    run.best.reset();
    run.best_of_all = true;
    for (const auto& [step, value] : train::evaluations_of(run.directory, metric)) {
      train::take_better(run.best, {metric, value, step});
    }
  }
}

void sort_runs(RunsListing& listing, const std::string& column) {
  std::string setting;
  if (std::ranges::find(kColumns, column) == kColumns.end()) {
    setting = setting_named(column, listing.settings);
    if (setting.empty()) {
      std::vector<std::string> known = kColumns;
      for (const auto& [path, name] : train::short_names(listing.settings)) known.push_back(name);
      throw UsageError("--sort " + column + ": there is no such column; " + suggestion(column, known));
    }
  }
  std::vector<std::size_t> order(listing.runs.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<SortKey> keys;
  for (const std::size_t i : order) keys.push_back(key_of(listing, i, column, setting));
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return keys[a] < keys[b]; });
  permute(listing.names, order);
  permute(listing.runs, order);
  permute(listing.settings, order);
}

}  // namespace lockstep::launcher
