// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/data/data_digest.h"
#include "runtime/data/preparation.h"
#include "runtime/step/loop_store.h"
#include "runtime/step/progress.h"
#include "runtime/train/goals.h"
#include "runtime/train/job_step.h"
#include "runtime/train/network.h"
#include "runtime/train/record/run_observer.h"
#include "runtime/train/train.h"

namespace lockstep::train {

/// The checkpoints of a run: resumes from them, writes them, deletes old ones. Rank 0 reads and writes for all.
class Checkpointer {
 public:
  /// All must outlive this.
  Checkpointer(const TrainOptions& options, Network& network, JobStep& step, Goals& goals, RunObserver& observers);

  /// Resumes where there is something to resume from, or loads the weights that a new run starts from, and only then
  /// changes what lies in the run directory: a resume that is refused leaves it as it was. `data` and `preparation`: of
  /// the data sets as they are now. A collective.
  step::Progress resume(std::vector<data::DataDigest> data, data::Preparation preparation);
  /// Writes the checkpoint of a run that has come to `progress`. A collective; throws StorageError.
  void save(const step::Progress& progress);
  /// Saves in best/ the one checkpoint of the goals' best value.
  void save_best(const step::Progress& progress);

  /// The step of the newest checkpoint.
  std::uint64_t saved_step() const { return saved_step_; }
  /// The path of the checkpoint that training started from, on rank 0; empty for a new run.
  const std::string& resumed_from() const { return resumed_from_; }
  /// Notes about the resume, for a person; on rank 0.
  const std::vector<std::string>& remarks() const { return remarks_; }
  /// The environment that the run computes in. The first call is a collective.
  const checkpoint::ComputeEnvironment& environment() { return store_.environment(); }

 private:
  /// Rank 0's part of a new run: the weights that the job starts from.
  void begin_anew();
  /// The best value is that of the weights in best/: an evaluation at a run's end comes behind its last checkpoint.
  /// Where no whole ones of the job's metric lie there, the next evaluation is the best.
  void take_kept_best(checkpoint::TrainingState& state) const;
  /// Rank 0's part: the checkpoint to resume from, restored; none for a run that starts anew.
  std::optional<checkpoint::Checkpoint> restore();
  void remark_on(const checkpoint::Checkpoint& found);
  /// The part of a run's checkpoint beside the loop's own state.
  void complete(checkpoint::TrainingState& state) const;

  const TrainOptions& options_;
  const job::Job& job_;
  Network& network_;
  JobStep& step_;
  Goals& goals_;
  RunObserver& observers_;
  step::LoopStore store_;
  std::optional<step::LoopStore> best_;  ///< where the job keeps the best one
  std::uint64_t saved_step_ = 0;
  std::string resumed_from_;
  std::vector<std::string> remarks_;
  std::vector<data::DataDigest> data_;  // as the run found them
  data::Preparation preparation_;
};

}  // namespace lockstep::train
