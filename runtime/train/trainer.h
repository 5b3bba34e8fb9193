// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "runtime/checkpoint/store.h"
#include "runtime/data/loader.h"
#include "runtime/optim/schedule.h"
#include "runtime/train/gpu_use.h"
#include "runtime/train/network.h"
#include "runtime/train/readback.h"
#include "runtime/train/run_facts.h"
#include "runtime/train/run_observer.h"
#include "runtime/train/signals.h"
#include "runtime/train/status_board.h"
#include "runtime/train/train.h"
#include "runtime/train/train_step.h"
#include "runtime/train/uploader.h"

namespace lockstep::train {

/// The training loop of one rank: the loop that a user would write, plus schedule, accumulation, evaluation,
/// checkpoints, signals and injected faults. What comes of it goes to observers.
class Trainer {
 public:
  /// Everything up to the first step: data, model, resume. `observers`: on rank 0. A collective.
  Trainer(comm::World& world, const TrainOptions& options, std::vector<RunObserver*> observers);
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// Trains to the end, kDone, or until it is asked to stop, kPreempted.
  ExitCode run();

  RunFacts facts() const;
  /// The step that the run has come to: the last one, or the one at work.
  std::uint64_t step() const { return current_step_; }
  /// "in step 5"
  std::string place() const;
  /// What training started from: a checkpoint's path, on rank 0; empty for a new run.
  const std::string& resumed_from() const { return resumed_from_; }
  std::uint64_t applied_steps();
  std::uint64_t skipped_steps() const;
  std::string weights_digest() const;
  const checkpoint::ComputeEnvironment& environment() const { return environment_; }
  /// Nothing on the CPU.
  std::optional<GpuSummary> gpu_summary() const;

 private:
  /// Resumes where there is something to resume from, and only then changes what lies in the run directory: a resume
  /// that is refused leaves it as it was.
  data::SamplerState begin();
  /// Rank 0's part: the state to resume from, its tensors restored; empty for a run that starts anew.
  std::optional<checkpoint::TrainingState> restore();
  /// A step that the device is working on.
  struct InFlight {
    StepReport report;  ///< what the host knows of it
    Readback* readback = nullptr;
    Launch launch;
    std::optional<std::chrono::nanoseconds> waited;  ///< for other ranks, before the step
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
  template <class Tell>
  void tell(Tell&& tell) const;
  /// Whether something is due behind this step that needs it to be finished.
  bool due(std::uint64_t step) const;
  /// Throws PeerError where the ranks no longer hold the same weights.
  void compare_weights();
  /// Sets stop_requested_ where a rank was told to stop meanwhile; then there is no result. `heeds_stop`: whether it
  /// looks.
  void evaluate(bool heeds_stop = true);
  /// The evaluation behind the last step, and whether it came to its end.
  bool evaluate_at_end();
  bool any_rank_was_told_to_stop();
  void save();
  void prune();
  checkpoint::TrainingState state();

  comm::World& world_;
  TrainOptions options_;
  std::vector<RunObserver*> observers_;
  const job::Job& job_;
  StatusBoard board_;
  StopSignals signals_;
  const checkpoint::ComputeEnvironment environment_;
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
  std::uint64_t launched_ = 0;      ///< steps handed to the device
  std::uint64_t step_ = 0;          ///< steps finished
  std::uint64_t current_step_ = 0;  ///< that was launched or finished last
  std::uint64_t saved_step_ = 0;    ///< of the newest checkpoint
  std::uint64_t compared_step_ = 0;
  std::uint64_t evaluated_step_ = 0;
  std::string resumed_from_;          ///< rank 0
  std::vector<std::string> remarks_;  ///< rank 0: on what was resumed
  bool prune_failed_ = false;
  bool stop_requested_ = false;  ///< agreed
  std::optional<data::Loader> loader_;
  GpuUse gpu_use_;
};

}  // namespace lockstep::train
