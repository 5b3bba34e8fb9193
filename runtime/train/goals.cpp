// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/goals.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/job/job.h"
#include "runtime/step/state_fields.h"

namespace lockstep::train {

Goals::Goals(const job::Job& job) {
  if (!job.checkpoint().best().empty()) best_.emplace(job.checkpoint().best());
  if (!job.train().has_early_stopping()) return;
  const job::EarlyStopping& early = job.train().early_stopping();
  patient_.emplace(early.metric(), early.min_delta());
  patience_ = early.patience();
}

void Goals::require_known(const job::Job& job, const std::vector<std::string>& metrics) {
  std::vector<std::string> names{"eval.loss"};
  for (const std::string& metric : metrics) names.push_back("eval." + metric);
  const auto require = [&names](const std::string& path, const std::string& name) {
    if (name.empty() || std::ranges::find(names, name) != names.end()) return;
    throw FieldError(
        path, fmt::format("\"{}\" is no metric of this job's evaluation; there are {}", name, fmt::join(names, ", ")));
  };
  require("checkpoint.best", job.checkpoint().best());
  require("train.early_stopping.metric", job.train().early_stopping().metric());
}

void Goals::require_saved(const checkpoint::Checkpoint& saved, const job::Job& job) {
  const checkpoint::TrainingState& state = saved.state;
  std::vector<std::string> lacking;
  const auto require = [&](const std::string& name, const std::string& before, const std::string& now, bool is_there,
                           const checkpoint::MetricState& found) {
    if (now.empty() || before != now) return;
    // step::require_complete() refuses a metric without a name.
    if (!is_there || (found.has_metric() && found.metric() != now)) lacking.push_back(name);
  };
  const job::Job& before = state.job();
  require("best", before.checkpoint().best(), job.checkpoint().best(), state.has_best(), state.best());
  require("early_stopping", before.train().early_stopping().metric(), job.train().early_stopping().metric(),
          state.has_early_stopping(), state.early_stopping());
  step::refuse_lacking(saved, lacking);
}

bool Goals::add(std::uint64_t step, const EvalResult& result) {
  evaluated_step_ = step;
  if (patient_) patient_->add(result);
  return best_ && best_->add(result);
}

std::string Goals::reason() const {
  return fmt::format("{} has not improved on {:.6g} for {} evaluations", patient_->metric(), patient_->best(),
                     patient_->evaluations_since());
}

void Goals::save(checkpoint::TrainingState& state) const {
  if (!any()) return;
  state.set_evaluated_step(evaluated_step_);
  if (best_) best_->save(*state.mutable_best());
  if (patient_) patient_->save(*state.mutable_early_stopping());
}

void Goals::load(const checkpoint::TrainingState& state) {
  evaluated_step_ = state.evaluated_step();
  if (best_) best_->load(state.best());
  if (patient_) patient_->load(state.early_stopping());
}

}  // namespace lockstep::train
