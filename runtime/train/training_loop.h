// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/train/checkpointer.h"
#include "runtime/train/evaluator.h"
#include "runtime/train/goals.h"
#include "runtime/train/hang_watch.h"
#include "runtime/train/job_step.h"
#include "runtime/train/last_events.h"
#include "runtime/train/network.h"
#include "runtime/train/rank_status.h"
#include "runtime/train/record/run_facts.h"
#include "runtime/train/record/run_observer.h"
#include "runtime/train/record/stragglers.h"
#include "runtime/train/signals.h"
#include "runtime/train/skipped_samples.h"
#include "runtime/train/step_trace.h"
#include "runtime/train/steps_in_flight.h"
#include "runtime/train/train.h"
#include "runtime/train/training_data.h"

namespace lockstep::train {

/// The training loop of one rank: a step::TrainingStep with a schedule, evaluation, checkpoints and signals around it.
/// Its results go to observers.
class TrainingLoop {
 public:
  /// Everything up to the first step: data, model, resume. A collective.
  TrainingLoop(comm::World& world, const TrainOptions& options, std::vector<RunObserver*> observers);
  TrainingLoop(const TrainingLoop&) = delete;
  TrainingLoop& operator=(const TrainingLoop&) = delete;

  /// Trains to the end, kDone, or until it is asked to stop, kPreempted.
  ExitCode run();

  RunFacts facts() const;
  /// The step that the run has come to: the last one, or the one at work.
  std::uint64_t step() const { return current_step_; }
  Checkpointer& checkpointer() { return checkpointer_; }
  std::uint64_t applied_steps();
  std::uint64_t skipped_steps();
  /// Nothing where a sample that cannot be read ends the run.
  std::optional<std::uint64_t> skipped_samples() const;
  std::string weights_digest() const;
  std::optional<GpuSummary> gpu_summary() const { return in_flight_.gpu_summary(); }

 private:
  void launch_step();
  /// Reads the oldest step in flight, and tells of it.
  void finish_step();
  void finish_steps();
  /// Tells of ranks that have begun or ceased to slow the others down.
  void look_for_stragglers(const StepReport& report);
  /// Writes this rank's last events into the run directory. Any thread may call it.
  void keep_last_events(const std::string& reason) const;
  /// Training stands still, for all that this rank can see.
  void on_hang() const;
  /// Throws NumericsError where the loss is not finite and no lower loss scale can cure that.
  void require_finite(const StepReport& report);
  /// The step behind which this process trains no more.
  std::uint64_t last_step() const;
  /// Whether something is due behind this step that needs it to be finished.
  bool due(std::uint64_t step) const;
  /// Throws PeerError where the ranks no longer hold the same weights.
  void compare_weights();
  /// compare_weights(), unless this step has done so: weights that the ranks do not agree on must not be saved.
  void require_agreement();
  /// Sets stop_requested_ where a rank was told to stop meanwhile; then there is no result. `heeds_stop`: whether it
  /// looks.
  void evaluate(bool heeds_stop = true);
  /// Reduces the learning rate where the evaluations so far ask for it, and tells of it where steps are left.
  void follow_plateau();
  /// Whether it was the program that asked for a stop, and no signal. A collective.
  bool program_ends();
  /// Whether step_ has an evaluation that goals, or whoever has the run stop there, depend on and that was cut off when
  /// the run was stopped.
  bool missed_evaluation() const;
  /// The evaluation behind the last step, and whether it came to its end.
  bool evaluate_at_end();
  /// Where the run has come to.
  step::Progress progress() const;
  void save();

  comm::World& world_;
  const TrainOptions options_;
  const job::Job& job_;
  RunObservers observers_;
  RankStatus status_;
  StopSignals signals_;
  TrainingData data_;
  data::SampleErrors sample_errors_;
  SkippedSamples skipped_samples_;
  SkippedNames skipped_names_;
  Network network_;
  std::unique_ptr<StepTrace> trace_;  ///< null where no steps are traced
  LastEvents last_events_;
  JobStep job_step_;
  Goals goals_;
  Checkpointer checkpointer_;
  std::optional<Evaluator> evaluator_;  ///< where the job has evaluation data
  StepsInFlight in_flight_;
  std::vector<std::string> hosts_;  ///< of the ranks
  Stragglers stragglers_;

  std::uint64_t launched_ = 0;                ///< steps handed to the device
  std::uint64_t step_ = 0;                    ///< steps finished
  std::atomic<std::uint64_t>& current_step_;  ///< that was launched or finished last
  std::uint64_t compared_step_ = 0;
  std::uint64_t evaluated_step_ = 0;
  bool stop_requested_ = false;  ///< agreed
  HangWatch hang_watch_;
};

}  // namespace lockstep::train
