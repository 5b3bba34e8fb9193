// SPDX-License-Identifier: Apache-2.0
#include "runtime/step/checkpoints.h"

#include <spdlog/spdlog.h>

#include "runtime/checkpoint/store.h"
#include "runtime/step/replicated.h"
#include "runtime/step/saved_state.h"
#include "runtime/step/saved_tensors.h"
#include "runtime/tensor/error.h"

namespace lockstep::step {

Progress Checkpoints::resume() {
  comm::Communicator& communicator = ddp_.communicator();
  std::string text;
  on_rank_zero(communicator, [&] {
    const auto found = checkpoint::Store(directory_).latest();
    if (!found) return;
    for (const std::string& notice : found->notices) spdlog::warn(notice);
    if (found->state.optimizer() != optimizer_.name()) {
      throw UsageError(
          found->path + " was saved with optimizer " + found->state.optimizer() + ", this one is " + optimizer_.name(),
          "Resume with the same optimizer, or from another directory.");
    }
    restore_tensors(optimizer_.arena(), optimizer_, *found, true);
    optimizer_.set_applied_steps(static_cast<std::int64_t>(found->state.applied_steps()));
    text = found->state.SerializeAsString();
  });
  text = communicator.broadcast_text(text, 0);
  if (text.empty()) return {};
  checkpoint::TrainingState saved;
  saved.ParseFromString(text);
  ddp_.broadcast_weights();
  broadcast_optimizer(optimizer_, communicator);
  scaler_.load_state_dict(scaler_of(saved));
  return progress_of(saved);
}

void Checkpoints::save(const Progress& progress, std::uint32_t keep) {
  ddp_.share_statistics();
  on_rank_zero(ddp_.communicator(), [&] {
    const checkpoint::Store store(directory_);
    store.save(describe(progress, ddp_, optimizer_, scaler_),
               host_copies(state_tensors(optimizer_.arena(), optimizer_)));
    try {
      store.prune(keep);
    } catch (const StorageError& error) {
      // The new one is safe; an old one that cannot be deleted is no reason to stop.
      if (!prune_failed_) spdlog::warn("old checkpoints stay: {}", error.what());
      prune_failed_ = true;
    }
  });
}

}  // namespace lockstep::step
