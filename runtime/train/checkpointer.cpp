// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/checkpointer.h"

#include <spdlog/spdlog.h>

#include <chrono>

#include "runtime/job/differences.h"
#include "runtime/job/job.h"
#include "runtime/step/replicated.h"
#include "runtime/step/saved_state.h"
#include "runtime/step/saved_tensors.h"
#include "runtime/tensor/error.h"
#include "runtime/train/set_aside.h"
#include "runtime/train/training_state.h"

namespace lockstep::train {

Checkpointer::Checkpointer(const TrainOptions& options, comm::World& world, Network& network, JobStep& step,
                           RunObserver& observers)
    : options_(options),
      job_(options.job),
      world_(world),
      network_(network),
      step_(step),
      observers_(observers),
      environment_(environment_of_run(world, options.device)),
      store_((options.run_dir / "checkpoints").string()) {}

step::Progress Checkpointer::resume() {
  std::string text;
  step::on_rank_zero(*world_.communicator(), [&] {
    if (const auto saved = restore()) text = saved->SerializeAsString();
  });
  text = world_.communicator()->broadcast_text(text, 0);
  if (text.empty()) return {};
  checkpoint::TrainingState saved;
  saved.ParseFromString(text);
  step_.ddp().broadcast_weights();
  step::broadcast_optimizer(network_.optimizer(), *world_.communicator());
  step_.scaler().load_state_dict(scaler_state(saved, job_));
  saved_step_ = saved.step();
  return step::progress_of(saved);
}

std::optional<checkpoint::TrainingState> Checkpointer::restore() {
  if (options_.resume == "never") {
    set_aside_earlier_run(options_.run_dir);
    return std::nullopt;
  }
  const bool automatic = options_.resume == "auto";
  const std::optional<checkpoint::Checkpoint> found = automatic ? store_.latest() : find_checkpoint(options_.resume);
  if (!found) return std::nullopt;
  for (const std::string& notice : found->notices) spdlog::warn(notice);
  restore_for(job_, *found, [&] {
    require_resumable(*found, job_, network_.optimizer().name());
    step::restore_tensors(network_.arena(), network_.optimizer(), *found, true);
  });
  network_.optimizer().set_applied_steps(static_cast<std::int64_t>(found->state.applied_steps()));
  resumed_from_ = found->path;
  if (!automatic) set_aside_later_checkpoints(options_.run_dir, found->state.step());
  remark_on(*found);
  const std::string warning = resume_warning(found->state, environment_, world_.size());
  if (!warning.empty()) spdlog::warn(warning);
  return found->state;
}

void Checkpointer::remark_on(const checkpoint::Checkpoint& found) {
  remarks_.push_back("resuming from " + found.path);
  for (const job::Difference& change : job::differences(found.state.job(), job_)) {
    remarks_.push_back("  the job changed: " + change.path + ": " + change.before + " -> " + change.after);
  }
  if (found.state.step() >= job_.train().steps()) {
    remarks_.push_back("all " + std::to_string(found.state.step()) +
                       " steps are done; --set train.steps=N trains on, another --run-dir starts anew");
  }
}

void Checkpointer::save(const step::Progress& progress) {
  const auto begin = std::chrono::steady_clock::now();
  std::string path;
  step::on_rank_zero(*world_.communicator(), [&] {
    observers_.saving(progress.step);
    path = store_.save(state(progress), step::host_copies(step::state_tensors(network_.arena(), network_.optimizer())));
    prune();
  });
  saved_step_ = progress.step;
  observers_.saved(progress.step, path,
                   std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
}

checkpoint::TrainingState Checkpointer::state(const step::Progress& progress) {
  checkpoint::TrainingState state = step::describe(progress, step_.ddp(), network_.optimizer(), step_.scaler());
  state.mutable_sampler()->set_seed(job_.seed());
  state.set_rng_seed(job_.seed());
  *state.mutable_job() = job_;
  state.set_job_hash(job::hash(job_));
  *state.mutable_environment() = environment_;
  return state;
}

void Checkpointer::prune() {
  try {
    store_.prune(job_.checkpoint().keep());
  } catch (const StorageError& error) {
    // The new one is safe; an old one that cannot be deleted is no reason to stop.
    if (!prune_failed_) observers_.note(std::string("old checkpoints stay: ") + error.what());
    prune_failed_ = true;
  }
}

}  // namespace lockstep::train
