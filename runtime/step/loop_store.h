// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "runtime/checkpoint/store.h"
#include "runtime/step/loop_parts.h"
#include "runtime/step/progress.h"

namespace lockstep::step {

/// The checkpoints of a loop, beneath step::Checkpoints and the training loop: how its parts become one and come back.
/// Rank 0 reads and writes for all.
class LoopStore {
 public:
  /// The parts must outlive this. Throws as require_parts().
  LoopStore(std::string directory, LoopParts parts);

  const checkpoint::Store& files() const { return store_; }
  comm::Communicator& communicator() const { return parts_.models.front().object.communicator(); }
  /// The environment that the loop computes in: environment_of_run(). The first call is a collective.
  const checkpoint::ComputeEnvironment& environment();

  /// `restored` runs on rank 0 and says which checkpoint it gave to restore(), or none. Then every rank's models,
  /// optimizers and means become those of rank 0; scalers are left to the caller. Returns the state, on every rank. A
  /// collective.
  std::optional<checkpoint::TrainingState> resume(
      const std::function<std::optional<checkpoint::Checkpoint>()>& restored);
  /// Within resume(): writes tensors and counts of a checkpoint into rank 0's parts. Throws UsageError before anything
  /// is changed where they do not fit.
  void restore(const checkpoint::Checkpoint& saved);
  /// Within resume(): warns of what the loop computes with, and of data, otherwise than the one that saved.
  void warn_of_changes(const checkpoint::TrainingState& saved);

  /// Writes the checkpoint of `progress`, to whose state `complete` adds, and deletes those older than the newest
  /// `keep` (0: none). Old ones that cannot be deleted stay, which the log says once: the new one is safe. Returns its
  /// path, on rank 0. A collective; throws StorageError where it cannot be written.
  std::string save(const Progress& progress, std::uint32_t keep,
                   const std::function<void(checkpoint::TrainingState&)>& complete = {});
  /// Saves as the only checkpoint of the store: deletes all others, later ones too.
  std::string save_only(const Progress& progress, const std::function<void(checkpoint::TrainingState&)>& complete = {});

 private:
  std::string write(const Progress& progress, const std::function<void(checkpoint::TrainingState&)>& complete,
                    const std::function<void()>& deletion);
  void prune(const std::function<void()>& deletion);

  LoopParts parts_;
  checkpoint::Store store_;
  std::optional<checkpoint::ComputeEnvironment> environment_;
  bool prune_failed_ = false;
};

}  // namespace lockstep::step
