// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/checkpoint/store.h"
#include "runtime/data/loader.h"
#include "runtime/optim/schedule.h"
#include "runtime/train/gpu_use.h"
#include "runtime/train/metrics.h"
#include "runtime/train/network.h"
#include "runtime/train/progress.h"
#include "runtime/train/readback.h"
#include "runtime/train/run_lock.h"
#include "runtime/train/signals.h"
#include "runtime/train/status_board.h"
#include "runtime/train/train.h"
#include "runtime/train/train_step.h"
#include "runtime/train/uploader.h"

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
  /// A step that the device is working on.
  struct InFlight {
    StepReport report;  ///< what the host knows of it
    Readback* readback = nullptr;
    Launch launch;
    std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
  };
  /// Hands the device a whole step; waits for nothing that the device does.
  void launch_step();
  /// Reads the oldest step in flight, and tells of it.
  void finish_step();
  void finish_steps();
  StepReport report_of(const InFlight& step, const StepOutcome& outcome) const;
  void require_finite(const StepReport& report) const;
  void after_step(const StepReport& report, const kernels::LossScaleState& scale);
  /// Whether something is due behind this step that needs it to be finished.
  bool due(std::uint64_t step) const;
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
  TrainStep train_step_;
  optim::Schedule schedule_;
  checkpoint::Store store_;

  Uploader uploader_;
  std::array<Readback, 2> readbacks_;  ///< of the step that runs and the one behind it
  std::deque<InFlight> in_flight_;
  std::chrono::steady_clock::time_point last_end_;
  std::uint64_t launched_ = 0;    ///< steps handed to the device
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
  GpuUse gpu_use_;
  double time_to_first_step_ms_ = 0.0;
};

}  // namespace lockstep::train
