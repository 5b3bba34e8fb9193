// SPDX-License-Identifier: Apache-2.0
#include "runtime/step/loop_store.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <utility>

#include "runtime/base/error.h"
#include "runtime/step/compute_environment.h"
#include "runtime/step/replicated.h"
#include "runtime/step/saved_state.h"
#include "runtime/step/saved_tensors.h"
#include "runtime/step/state_fields.h"

namespace lockstep::step {

LoopStore::LoopStore(std::string directory, LoopParts parts) : parts_(std::move(parts)), store_(std::move(directory)) {
  require_parts(parts_);
}

const checkpoint::ComputeEnvironment& LoopStore::environment() {
  if (!environment_) {
    environment_ = environment_of_run(communicator(), parts_.models.front().object.model().arena()->masters().device());
  }
  return *environment_;
}

std::optional<checkpoint::TrainingState> LoopStore::resume(
    const std::function<std::optional<checkpoint::Checkpoint>()>& restored) {
  environment();
  std::string text;
  on_rank_zero(communicator(), [&] {
    if (const auto saved = restored()) text = saved->state.SerializeAsString();
  });
  text = communicator().broadcast_text(text, 0);
  if (text.empty()) return std::nullopt;
  checkpoint::TrainingState state;
  state.ParseFromString(text);
  for (const auto& [name, ddp] : parts_.models) ddp.broadcast_weights();
  for (const auto& [name, optimizer] : parts_.optimizers) broadcast_optimizer(optimizer, communicator());
  for (const auto& [name, mean] : parts_.means) {
    communicator().broadcast(mean.values(), 0, Stream::current(mean.values().device()));
  }
  return state;
}

void LoopStore::restore(const checkpoint::Checkpoint& saved) {
  require_complete(saved);
  require_same_parts(parts_, saved);
  restore_tensors(parts_, saved);
  int number = 0;
  for (const auto& [name, optimizer] : parts_.optimizers) {
    optimizer.set_applied_steps(static_cast<std::int64_t>(saved.state.schedule(number++).applied_steps()));
  }
}

void LoopStore::warn_of_changes(const checkpoint::TrainingState& saved) {
  const std::string warning = resume_warning(saved, environment(), communicator().size());
  if (!warning.empty()) spdlog::warn(warning);
  for (const std::string& change : data::changes(saved_digests(saved), parts_.data)) {
    spdlog::warn("the data changed: {}", change);
  }
  const std::vector<std::string> unknown = unknown_fields(saved);
  if (unknown.empty()) return;
  spdlog::warn("the checkpoint holds what this version does not know, and goes on without: {}",
               fmt::join(unknown, ", "));
}

std::string LoopStore::save(const Progress& progress, std::uint32_t keep,
                            const std::function<void(checkpoint::TrainingState&)>& complete) {
  return write(progress, complete, [&] { store_.prune(keep); });
}

std::string LoopStore::save_only(const Progress& progress,
                                 const std::function<void(checkpoint::TrainingState&)>& complete) {
  return write(progress, complete, [&] { store_.keep_only(progress.step); });
}

std::string LoopStore::write(const Progress& progress, const std::function<void(checkpoint::TrainingState&)>& complete,
                             const std::function<void()>& deletion) {
  environment();
  for (const auto& [name, ddp] : parts_.models) ddp.share_statistics();
  std::string path;
  on_rank_zero(communicator(), [&] {
    checkpoint::TrainingState state = describe(progress, parts_);
    *state.mutable_environment() = *environment_;
    if (complete) complete(state);
    path = store_.save(state, host_copies(state_tensors(parts_)));
    prune(deletion);
  });
  return path;
}

void LoopStore::prune(const std::function<void()>& deletion) {
  try {
    deletion();
  } catch (const StorageError& error) {
    if (!prune_failed_) spdlog::warn("old checkpoints stay: {}", error.what());
    prune_failed_ = true;
  }
}

}  // namespace lockstep::step
