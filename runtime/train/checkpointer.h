// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/group/world.h"
#include "runtime/checkpoint/store.h"
#include "runtime/step/progress.h"
#include "runtime/train/compute_environment.h"
#include "runtime/train/job_step.h"
#include "runtime/train/network.h"
#include "runtime/train/run_observer.h"
#include "runtime/train/train.h"

namespace lockstep::train {

/// The checkpoints of a run: resumes from them, writes them, deletes old ones. Rank 0 reads and writes for all.
class Checkpointer {
 public:
  /// A collective. All must outlive this.
  Checkpointer(const TrainOptions& options, comm::World& world, Network& network, JobStep& step,
               RunObserver& observers);

  /// Resumes where there is something to resume from, and only then changes what lies in the run directory: a resume
  /// that is refused leaves it as it was. A collective.
  step::Progress resume();
  /// Writes the checkpoint of a run that has come to `progress`. A collective; throws StorageError.
  void save(const step::Progress& progress);

  /// Of the newest checkpoint.
  std::uint64_t saved_step() const { return saved_step_; }
  /// What training started from: a checkpoint's path, on rank 0; empty for a new run.
  const std::string& resumed_from() const { return resumed_from_; }
  /// What a person should know of the resume, on rank 0.
  const std::vector<std::string>& remarks() const { return remarks_; }
  const checkpoint::ComputeEnvironment& environment() const { return environment_; }

 private:
  /// Rank 0's part: the state to resume from, its tensors restored; empty for a run that starts anew.
  std::optional<checkpoint::TrainingState> restore();
  void remark_on(const checkpoint::Checkpoint& found);
  checkpoint::TrainingState state(const step::Progress& progress);
  void prune();

  const TrainOptions& options_;
  const job::Job& job_;
  comm::World& world_;
  Network& network_;
  JobStep& step_;
  RunObserver& observers_;
  const checkpoint::ComputeEnvironment environment_;
  checkpoint::Store store_;
  std::uint64_t saved_step_ = 0;
  std::string resumed_from_;
  std::vector<std::string> remarks_;
  bool prune_failed_ = false;
};

}  // namespace lockstep::train
