// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/checkpointer.h"

#include <spdlog/spdlog.h>

#include <chrono>

#include "comm/ddp/digest.h"
#include "runtime/job/differences.h"
#include "runtime/job/job.h"
#include "runtime/tensor/error.h"
#include "runtime/train/replicated.h"
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

StartingPoint Checkpointer::resume() {
  std::string text;
  on_rank_zero(*world_.communicator(), [&] {
    if (const auto saved = restore()) text = saved->SerializeAsString();
  });
  text = world_.communicator()->broadcast_text(text, 0);
  if (text.empty()) return {};
  checkpoint::TrainingState saved;
  saved.ParseFromString(text);
  step_.ddp().broadcast_weights();
  broadcast_optimizer(network_.optimizer(), *world_.communicator());
  step_.scaler().load_state_dict(scaler_state(saved, job_));
  saved_step_ = saved.step();
  return {saved_step_, {saved.sampler().epoch(), static_cast<std::int64_t>(saved.sampler().cursor())}};
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
    restore_tensors(network_, *found, true);
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

void Checkpointer::save(std::uint64_t step, const data::SamplerState& sampler) {
  const auto begin = std::chrono::steady_clock::now();
  std::string path;
  on_rank_zero(*world_.communicator(), [&] {
    observers_.saving(step);
    path = store_.save(state(step, sampler), host_copies(state_tensors(network_)));
    prune();
  });
  saved_step_ = step;
  observers_.saved(step, path, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
}

checkpoint::TrainingState Checkpointer::state(std::uint64_t step, const data::SamplerState& sampler) {
  checkpoint::TrainingState state;
  state.set_lockstep_version(LOCKSTEP_VERSION);
  state.set_step(step);
  state.set_applied_steps(static_cast<std::uint64_t>(network_.optimizer().applied_steps()));
  state.set_epoch(sampler.epoch);
  state.mutable_sampler()->set_seed(job_.seed());
  state.mutable_sampler()->set_epoch(sampler.epoch);
  state.mutable_sampler()->set_cursor(static_cast<std::uint64_t>(sampler.cursor));
  state.set_rng_seed(job_.seed());
  *state.mutable_scaler() = to_message(step_.scaler().state_dict());
  state.mutable_schedule()->set_applied_steps(state.applied_steps());
  state.mutable_schedule()->set_last_learning_rate(static_cast<float>(network_.optimizer().learning_rate()));
  *state.mutable_bucket_plan() = to_message(comm::describe_plan(step_.ddp().reducer().buckets(), network_.arena()));
  *state.mutable_job() = job_;
  state.set_job_hash(job::hash(job_));
  state.set_world_size(static_cast<std::uint32_t>(world_.size()));
  state.set_optimizer(network_.optimizer().name());
  state.set_weights_digest(comm::weights_digest(network_.arena()));
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
