// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/goals.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <variant>

#include "runtime/base/error.h"
#include "runtime/base/nearest.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/job/job.h"
#include "runtime/job/training_options.h"
#include "runtime/step/state_fields.h"

namespace lockstep::train {

namespace {

/// "eval.loss has not improved on 0.4312 for 5 evaluations"
std::string no_improvement(const std::string& metric, double best, std::int64_t evaluations) {
  return fmt::format("{} has not improved on {:.6g} for {} evaluation{}", metric, best, evaluations,
                     evaluations == 1 ? "" : "s");
}

}  // namespace

Goals::Goals(const job::Job& job) {
  if (!job.checkpoint().best().empty()) best_.emplace(job.checkpoint().best());
  const optim::ScheduleOptions schedule = job::schedule_options(job.schedule());
  if (const auto* const plateau = std::get_if<optim::ReduceOnPlateauSchedule>(&schedule)) {
    const auto better = is_better_lower(plateau->metric) ? optim::Better::kLower : optim::Better::kHigher;
    plateau_.emplace(*plateau, job::learning_rate_of(job.optimizer()), better);
  }
  if (!job.train().has_early_stopping()) return;
  const job::EarlyStopping& early = job.train().early_stopping();
  patient_.emplace(early.metric(), early.min_delta());
  patience_ = early.patience();
}

std::vector<std::string> Goals::names_of(const std::vector<std::string>& metrics) {
  std::vector<std::string> names{"eval.loss"};
  for (const std::string& metric : metrics) names.push_back("eval." + metric);
  return names;
}

void Goals::require_known(const job::Job& job, const std::vector<std::string>& metrics) {
  const std::vector<std::string> names = names_of(metrics);
  const auto require = [&names](const std::string& path, const std::string& name) {
    if (name.empty() || std::ranges::find(names, name) != names.end()) return;
    throw FieldError(
        path, fmt::format("\"{}\" is no metric of this job's evaluation; there are {}", name, name_list(name, names)));
  };
  require("checkpoint.best", job.checkpoint().best());
  require("train.early_stopping.metric", job.train().early_stopping().metric());
  require("schedule.reduce_on_plateau.metric", job.schedule().reduce_on_plateau().metric());
}

void Goals::require_saved(const checkpoint::Checkpoint& saved, const job::Job& job) {
  const checkpoint::TrainingState& state = saved.state;
  std::vector<std::string> lacking;
  const auto require = [&](const std::string& name, const std::string& before, const std::string& now, bool is_there,
                           const auto& found) {
    if (now.empty() || before != now) return;
    // step::require_complete() refuses a metric without a name.
    if (!is_there || (found.has_metric() && found.metric() != now)) lacking.push_back(name);
  };
  const job::Job& before = state.job();
  require("best", before.checkpoint().best(), job.checkpoint().best(), state.has_best(), state.best());
  require("early_stopping", before.train().early_stopping().metric(), job.train().early_stopping().metric(),
          state.has_early_stopping(), state.early_stopping());
  require("reduce_on_plateau", before.schedule().reduce_on_plateau().metric(),
          job.schedule().reduce_on_plateau().metric(), state.has_reduce_on_plateau(), state.reduce_on_plateau());
  step::refuse_lacking(saved, lacking);
}

bool Goals::add(std::uint64_t step, const EvalResult& result) {
  evaluated_step_ = step;
  if (patient_) patient_->add(result);
  if (plateau_) {
    const auto value = value_of(result, plateau_->options().metric);
    plateau_->add(value.value_or(std::numeric_limits<double>::quiet_NaN()));
  }
  return best_ && best_->add(result);
}

std::string Goals::reason() const {
  return no_improvement(patient_->metric(), patient_->best(), patient_->evaluations_since());
}

std::string Goals::reason_to_reduce() const {
  return no_improvement(plateau_->options().metric, plateau_->state().best, plateau_->options().patience + 1);
}

void Goals::save(checkpoint::TrainingState& state) const {
  if (!any()) return;
  state.set_evaluated_step(evaluated_step_);
  if (best_) best_->save(*state.mutable_best());
  if (patient_) patient_->save(*state.mutable_early_stopping());
  if (!plateau_) return;
  const optim::PlateauState& now = plateau_->state();
  checkpoint::PlateauState& saved = *state.mutable_reduce_on_plateau();
  saved.set_metric(plateau_->options().metric);
  saved.set_best(now.best);
  saved.set_bad_evaluations(static_cast<std::uint64_t>(now.bad_evaluations));
  saved.set_cooldown_left(static_cast<std::uint64_t>(now.cooldown_left));
  saved.set_reductions(static_cast<std::uint64_t>(now.reductions));
}

void Goals::load(const checkpoint::TrainingState& state) {
  evaluated_step_ = state.evaluated_step();
  if (best_) best_->load(state.best());
  if (patient_) patient_->load(state.early_stopping());
  if (!plateau_) return;
  const checkpoint::PlateauState& saved = state.reduce_on_plateau();
  optim::PlateauState next = plateau_->state();
  if (saved.metric() == plateau_->options().metric) {
    next.best = saved.best();
    next.bad_evaluations = static_cast<std::int64_t>(saved.bad_evaluations());
    next.cooldown_left = static_cast<std::int64_t>(saved.cooldown_left());
  }
  next.reductions = static_cast<std::int64_t>(saved.reductions());
  plateau_->load_state(next);
}

}  // namespace lockstep::train
