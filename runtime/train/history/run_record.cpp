// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/history/run_record.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "runtime/base/error.h"
#include "runtime/base/files/durable_file.h"
#include "runtime/base/json_text.h"
#include "runtime/job/saved_job.h"
#include "runtime/train/history/evaluations.h"
#include "runtime/train/history/metrics_tail.h"
#include "runtime/train/record/eval_result.h"
#include "runtime/train/record/median.h"
#include "runtime/train/record/run_files.h"
#include "runtime/train/record/run_lock.h"

namespace lockstep::train {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

/// A run that wrote a line so many seconds ago trains, wherever its processes are.
constexpr double kFresh = 60.0;
/// One that another machine holds may evaluate or save for longer.
constexpr double kFreshElsewhere = 3600.0;

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

void read_job(RunRecord& run) {
  const fs::path path = run.directory / "job.pbtxt";
  try {
    run.job = job::read_saved(read_file(path.string(), job::kMostSavedBytes));
    if (!run.job) return run.problems.push_back("job.pbtxt is not the text of a job");
    run.steps = run.job->train().steps();
  } catch (const StorageError& error) {
    std::error_code hidden;
    run.problems.push_back(fs::exists(path, hidden) ? error.what() : "there is no job.pbtxt");
  }
}

void read_summary(RunRecord& run) {
  const fs::path path = run.directory / "summary.json";
  run.summary = read_json(path);
  if (run.summary.is_object()) return;
  run.summary = nullptr;
  std::error_code hidden;
  if (fs::exists(path, hidden)) run.problems.push_back("summary.json is no JSON");
}

void note_best(RunRecord& run, const std::vector<Json>& events) {
  std::string metric;
  for (const Json& event : events) {
    if (field_of(event, "event") != "eval") continue;
    if (metric.empty()) metric = metric_of(run, event);
    const double number = value_in(event, metric);
    const Json& step = field_of(event, "step");
    if (step.is_number_unsigned()) take_better(run.best, {metric, number, step.get<std::uint64_t>()});
  }
}

double number_or_nan(const Json& value) {
  return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

void note_last(RunRecord& run, const MetricsTail& tail) {
  for (const std::vector<Json>* lines : {&tail.events, &tail.steps}) {
    for (const Json& line : *lines) {
      run.last_time = std::fmax(run.last_time, number_or_nan(field_of(line, "time")));
    }
  }
  if (!tail.steps.empty()) run.step = tail.steps.back()["step"].get<std::uint64_t>();
  std::vector<float> rates;
  for (const Json& step : tail.steps) {
    if (field_of(step, "samples_per_s").is_number()) rates.push_back(step["samples_per_s"].get<float>());
  }
  if (!rates.empty()) run.samples_per_s = median(rates);
}

RunStatus status_named(const Json& name) {
  if (name == "done") return RunStatus::kDone;
  return name == "preempted" ? RunStatus::kPreempted : RunStatus::kFailed;
}

void note_end(RunRecord& run, const Json& status, const Json& code) {
  run.status = status_named(status);
  if (code.is_number_integer()) run.exit_code = code.get<int>();
}

bool is_held(const RunRecord& run) {
  const Holder holder = holder_of(run.directory);
  return holder == Holder::kHere || (holder == Holder::kElsewhere && !(now() - run.last_time > kFreshElsewhere));
}

void decide_status(RunRecord& run, const MetricsTail& tail) {
  if (is_held(run)) {
    run.status = tail.steps.empty() ? RunStatus::kStarting : RunStatus::kRunning;
  } else if (!tail.end.is_null() && !tail.trained_after_end) {
    note_end(run, field_of(tail.end, "event"), field_of(tail.end, "exit_code"));
  } else if (const Json& step = field_of(run.summary, "step"); step.is_number_unsigned() && step == run.step) {
    // The disk that took no more lines may have taken the summary.
    note_end(run, field_of(run.summary, "status"), field_of(run.summary, "exit_code"));
  } else if (now() - run.last_time < kFresh) {
    run.status = RunStatus::kRunning;
  } else {
    run.status = RunStatus::kLost;
  }
  const Json& rate = field_of(run.summary, "samples_per_s");
  const bool ended = run.status != RunStatus::kRunning && run.status != RunStatus::kLost;
  if (ended && rate.is_number() && rate.get<double>() > 0) run.samples_per_s = rate.get<double>();
}

}  // namespace

void take_better(std::optional<BestValue>& best, const BestValue& value) {
  if (std::isnan(value.value)) return;
  const bool is_better =
      !best || (is_better_lower(value.metric) ? value.value < best->value : value.value > best->value);
  if (is_better) best = value;
}

std::string_view name_of(RunStatus status) {
  switch (status) {
    case RunStatus::kStarting:
      return "starting";
    case RunStatus::kRunning:
      return "running";
    case RunStatus::kDone:
      return "done";
    case RunStatus::kPreempted:
      return "preempted";
    case RunStatus::kFailed:
      return "failed";
    case RunStatus::kLost:
      break;
  }
  return "lost";
}

std::string metric_of(const RunRecord& run, const Json& evaluation) {
  if (run.job && !run.job->checkpoint().best().empty()) return run.job->checkpoint().best();
  if (run.job && !run.job->train().early_stopping().metric().empty()) return run.job->train().early_stopping().metric();
  for (const auto& [name, value] : evaluation.items()) {
    if (!value.is_number() || name == "step" || name == "time" || name == "samples" || name == "loss") continue;
    return name == "skipped_samples" ? "eval.loss" : "eval." + name;
  }
  return "eval.loss";
}

RunRecord read_run(const fs::path& directory) {
  RunRecord run{.directory = directory};
  read_job(run);
  read_summary(run);
  MetricsTail tail;
  try {
    tail = read_metrics_tail(directory / "metrics.jsonl");
  } catch (const StorageError& error) {
    std::error_code hidden;
    run.problems.push_back(fs::exists(directory / "metrics.jsonl", hidden) ? error.what()
                                                                           : "there is no metrics.jsonl");
  }
  note_last(run, tail);
  note_best(run, tail.events);
  run.best_of_all = tail.whole;
  decide_status(run, tail);
  return run;
}

}  // namespace lockstep::train
