// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/goals.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/tensor/error.h"

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
