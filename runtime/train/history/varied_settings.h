// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "runtime/train/history/run_record.h"

namespace lockstep::train {

/// Settings by their paths: {"optimizer.sgd.lr": "0.1"}. A setting that a run has not is not there.
using Settings = std::map<std::string, std::string>;

/// For each run the settings in which the runs differ, but for the job's name and injected faults; with `by_name` those
/// in which it differs from the runs whose jobs have the same name. Empty for a run whose job is not known.
std::vector<Settings> varied_settings(std::span<const RunRecord> runs, bool by_name);

/// The shortest ending of each path that no other path has: "lr" for "optimizer.sgd.lr".
std::map<std::string, std::string> short_names(const std::vector<Settings>& settings);

}  // namespace lockstep::train
