// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "runtime/train/history/run_record.h"
#include "runtime/train/history/varied_settings.h"

namespace lockstep::launcher {

/// Runs as `lockstep runs` shows them.
struct RunsListing {
  std::vector<std::string> names;  ///< paths below the folder
  std::vector<train::RunRecord> runs;
  std::vector<train::Settings> settings;  ///< by which runs of the same job differ
};

/// Reads the runs of a folder. Throws StorageError where it cannot be read.
RunsListing list_runs(const std::filesystem::path& folder);

/// Takes "eval.loss" for the metric that runs are compared by: their best values become those of it.
void compare_by(RunsListing& listing, const std::string& metric);

/// Sorts by "run", "status", "step", "best", "rate", "age" or a setting: its path, or the end of it. The best and the
/// fastest come first, and the youngest; of settings the lowest. Runs without a value come last. Throws UsageError for
/// another name.
void sort_runs(RunsListing& listing, const std::string& column);

/// Of the terminal behind stdout; 0 where it is none: a line that goes to a file or another program is not cut.
std::size_t width_of_stdout();

/// A line a run, of at most `width` characters, 0: of any length, and below it what is wrong with runs.
std::string listing_text(const RunsListing& listing, std::size_t width);
/// [{"run", "directory", "status", "step", "steps", "best": {"metric", "value", "step", "of_all"}, "samples_per_s",
/// "last_time", "age_s", "exit_code", "settings": {path: value}, "problems": [text]}]; null for what is not known.
nlohmann::ordered_json to_json(const RunsListing& listing);
/// The same with a column a setting, RFC 4180; empty cells for what is not known.
std::string listing_csv(const RunsListing& listing);

}  // namespace lockstep::launcher
