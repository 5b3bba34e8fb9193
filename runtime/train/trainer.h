// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "amp/grad_scaler/grad_scaler.h"
#include "comm/ddp/distributed_data_parallel.h"
#include "runtime/checkpoint/store.h"
#include "runtime/data/loader.h"
#include "runtime/optim/schedule.h"
#include "runtime/train/faults.h"
#include "runtime/train/metrics.h"
#include "runtime/train/network.h"
#include "runtime/train/progress.h"
#include "runtime/train/run_lock.h"
#include "runtime/train/signals.h"
#include "runtime/train/status_board.h"
#include "runtime/train/train.h"

namespace lockstep::train {

/// The training loop of one rank: the loop that a user would write, plus schedule, accumulation, evaluation, metrics,
/// checkpoints, signals and injected faults.
class Trainer {
 public:
  /// Everything up to the first step: data, model, resume. A collective.
  Trainer(comm::World& world, const TrainOptions& options);
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  ExitCode run();

 private:
  bool is_root() const { return world_.rank() == 0; }
  /// Takes possession of the run directory, resumes where there is something to resume from, and only then changes what
  /// lies there: a resume that is refused leaves it as it was.
  data::SamplerState begin();
  /// Rank 0's part: the state to resume from, its tensors restored; empty for a run that starts anew.
  std::optional<checkpoint::TrainingState> restore();
  StepReport step();
  /// Sums over ranks what every rank must know alike: the step's loss, and whether any of them was told to stop.
  void agree_on_step(StepReport& report);
  void require_finite(const StepReport& report) const;
  void after_step(const StepReport& report);
  /// Throws PeerError where the ranks no longer hold the same weights.
  void compare_weights();
  /// Sets stop_requested_ where a rank was told to stop meanwhile; then there is no result.
  void evaluate();
  void save();
  void prune();
  checkpoint::TrainingState state();
  void write_summary();

  comm::World& world_;
  TrainOptions options_;
  const job::Job& job_;
  StopSignals signals_;
  StatusBoard board_;
  data::DatasetPtr train_data_;
  data::DatasetPtr eval_data_;  ///< null where the job has none
  Network network_;
  comm::DistributedDataParallel ddp_;
  amp::GradScaler scaler_;
  optim::Schedule schedule_;
  Faults faults_;
  checkpoint::Store store_;

  std::uint64_t step_ = 0;        ///< steps finished
  std::uint64_t saved_step_ = 0;  ///< of the newest checkpoint
  std::uint64_t compared_step_ = 0;
  std::string resumed_from_;  ///< rank 0
  bool prune_failed_ = false;
  bool stop_requested_ = false;  ///< agreed
  std::optional<data::Loader> loader_;
  std::optional<RunLock> lock_;     ///< rank 0
  std::optional<Metrics> metrics_;  ///< rank 0
  std::optional<Progress> progress_;
  std::optional<EvalResult> last_eval_;
  std::uint64_t last_eval_step_ = 0;
  double last_loss_ = std::numeric_limits<double>::quiet_NaN();
  double samples_ = 0.0;
  double seconds_ = 0.0;
  std::vector<float> step_ms_;
  double time_to_first_step_ms_ = 0.0;
};

}  // namespace lockstep::train
