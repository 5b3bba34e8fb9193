// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/job/job.h"

namespace lockstep::train {

/// kStarting: it has no step and no end yet. kLost: it told of no end, and no process trains there.
enum class RunStatus { kStarting, kRunning, kDone, kPreempted, kFailed, kLost };
std::string_view name_of(RunStatus status);

/// The best value of a metric over a run's evaluations.
struct BestValue {
  std::string metric;  ///< "eval.accuracy"
  double value = 0.0;
  std::uint64_t step = 0;
};

/// Makes a value the best one where it is better, or the first; a NaN never is.
void take_better(std::optional<BestValue>& best, const BestValue& value);

/// What a run's directory tells of the run.
struct RunRecord {
  std::filesystem::path directory;
  RunStatus status = RunStatus::kStarting;
  std::optional<job::Job> job;    ///< as resolved; none where it cannot be read
  std::uint64_t step = 0;         ///< that it has come to
  std::uint64_t steps = 0;        ///< of its job; 0: not known
  std::optional<BestValue> best;  ///< none where nothing was evaluated
  bool best_of_all = true;        ///< else of the last evaluations: the file is long, and its end alone was read
  double samples_per_s = std::numeric_limits<double>::quiet_NaN();
  double last_time = std::numeric_limits<double>::quiet_NaN();  ///< of its last line, seconds since 1970
  std::optional<int> exit_code;                                 ///< of a run that has ended
  nlohmann::ordered_json summary;                               ///< summary.json; null where there is none
  std::vector<std::string> problems = {};                       ///< "summary.json is no JSON"
};

/// Reads a run in milliseconds, however long it is. Never throws for what is damaged or missing: `problems` has it.
RunRecord read_run(const std::filesystem::path& directory);

/// The metric by which runs of a job are compared: that of checkpoint.best or early stopping, or else the first one of
/// the evaluation, or its loss.
std::string metric_of(const RunRecord& run, const nlohmann::ordered_json& evaluation);

}  // namespace lockstep::train
