// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/checkpointer.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/job/differences.h"
#include "runtime/job/job.h"
#include "runtime/step/saved_preparation.h"
#include "runtime/step/saved_state.h"
#include "runtime/step/state_fields.h"
#include "runtime/tensor/trace_range.h"
#include "runtime/train/initial_weights.h"
#include "runtime/train/record/set_aside.h"
#include "runtime/train/training_state.h"

namespace lockstep::train {

namespace {

step::LoopParts parts_of(Network& network, JobStep& step) {
  step::LoopParts parts{{{"", step.ddp()}}, {{"", network.optimizer()}}, {{"", step.scaler()}}};
  if (step.mean() != nullptr) parts.means.push_back({"", *step.mean()});
  return parts;
}

}  // namespace

Checkpointer::Checkpointer(const TrainOptions& options, Network& network, JobStep& step, Goals& goals,
                           RunObserver& observers)
    : options_(options),
      job_(options.job),
      network_(network),
      step_(step),
      goals_(goals),
      observers_(observers),
      store_((options.run_dir / "checkpoints").string(), parts_of(network, step)) {
  if (!job_.checkpoint().best().empty()) best_.emplace((options.run_dir / "best").string(), parts_of(network, step));
}

step::Progress Checkpointer::resume(std::vector<data::DataDigest> data, data::Preparation preparation) {
  data_ = std::move(data);
  preparation_ = std::move(preparation);
  const auto saved = store_.resume([&] { return restore(); });
  if (!saved) {
    if (job_.has_init_from()) step_.ddp().broadcast_weights();
    if (job_.has_init_from() && step_.mean() != nullptr) step_.mean()->restart();
    return {};
  }
  step_.scaler().load_state_dict(scaler_state(*saved, job_));
  goals_.load(*saved);
  saved_step_ = saved->step();
  return step::progress_of(*saved);
}

void Checkpointer::begin_anew() {
  if (job_.has_init_from()) remarks_ = load_initial_weights(job_, network_.model());
}

std::optional<checkpoint::Checkpoint> Checkpointer::restore() {
  // A run that has nothing left to save leaves nothing of killed ones either.
  store_.files().remove_abandoned();
  if (best_) {
    // What is no folder there would end the run at its first evaluation.
    best_->files().steps();
    best_->files().remove_abandoned();
  }
  if (options_.resume == "never") {
    begin_anew();
    set_aside_earlier_run(options_.run_dir);
    return std::nullopt;
  }
  const bool automatic = options_.resume == "auto";
  std::optional<checkpoint::Checkpoint> found = automatic ? store_.files().latest() : find_checkpoint(options_.resume);
  if (!found) {
    begin_anew();
    set_aside_later_best(options_.run_dir, 0);
    return std::nullopt;
  }
  for (const std::string& notice : found->notices) spdlog::warn(notice);
  restore_for(job_, *found, [&] {
    require_resumable(*found, job_, network_.optimizer().name());
    Goals::require_saved(*found, job_);
    store_.restore(*found);
  });
  set_aside_later_best(options_.run_dir, found->state.step());
  take_kept_best(found->state);
  resumed_from_ = found->path;
  if (!automatic) set_aside_later_checkpoints(options_.run_dir, found->state.step());
  remark_on(*found);
  store_.warn_of_changes(found->state);
  return found;
}

void Checkpointer::take_kept_best(checkpoint::TrainingState& state) const {
  if (!best_) return;
  state.clear_best();
  try {
    const auto kept = best_->files().latest_state();
    if (kept) step::require_complete(*kept);
    if (kept && kept->state.best().metric() == job_.checkpoint().best()) *state.mutable_best() = kept->state.best();
  } catch (const StorageError& error) {
    // The run itself has what it needs.
    spdlog::warn("the best weights are lost: {}", error.what());
  }
}

void Checkpointer::remark_on(const checkpoint::Checkpoint& found) {
  remarks_.push_back("resuming from " + found.path);
  if (!found.state.has_job()) {
    remarks_.push_back("  it holds no job, so what changed in this one is not known");
  } else {
    for (const job::Difference& change : job::differences(found.state.job(), job_)) {
      remarks_.push_back("  the job changed: " + change.path + ": " + change.before + " -> " + change.after);
    }
  }
  for (const std::string& change : data::changes(step::saved_digests(found.state), data_)) {
    remarks_.push_back("  the data changed: " + change);
  }
  if (found.state.step() >= job_.train().steps()) {
    remarks_.push_back("all " + std::to_string(found.state.step()) +
                       " steps are done; --set train.steps=N trains on, another --run-dir starts anew");
  }
}

void Checkpointer::complete(checkpoint::TrainingState& state) const {
  state.set_rng_seed(job_.seed());
  // Before the first batch, a place that came without its seed is one in this job's order.
  if (!state.sampler().has_seed()) state.mutable_sampler()->set_seed(job_.seed());
  *state.mutable_job() = job_;
  state.set_job_hash(job::hash(job_));
  goals_.save(state);
  step::save_digests(data_, state);
  step::save_preparation(preparation_, state);
}

void Checkpointer::save(const step::Progress& progress) {
  const TraceRange range("save a checkpoint");
  const auto begin = std::chrono::steady_clock::now();
  const std::string path = store_.save(progress, job_.checkpoint().keep(), [&](checkpoint::TrainingState& state) {
    observers_.saving(progress.step);
    complete(state);
  });
  saved_step_ = progress.step;
  observers_.saved(progress.step, path,
                   std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
}

void Checkpointer::save_best(const step::Progress& progress) {
  const TraceRange range("save a checkpoint");
  const std::string path = best_->save_only(progress, [&](checkpoint::TrainingState& state) {
    observers_.saving(progress.step);
    complete(state);
  });
  observers_.best(progress.step, goals_.best().metric(), goals_.best().best(), path);
}

}  // namespace lockstep::train
