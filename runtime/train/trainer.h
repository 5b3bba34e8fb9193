// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/group/world.h"
#include "model_zoo/model_input.h"
#include "runtime/base/error.h"
#include "runtime/data/dataset.h"
#include "runtime/nn/module.h"
#include "runtime/optim/registered_schedule.h"
#include "runtime/step/training_step.h"
#include "runtime/tensor/device.h"
#include "runtime/train/record/eval_result.h"
#include "runtime/train/record/run_observer.h"

namespace lockstep::train {

/// A run of a program. What the program gives here (model, data, loss, schedule) its job leaves out.
struct TrainerOptions {
  /// The text of a job: "data { global_batch: 64 } optimizer { adam { lr: 0.003 } } train { steps: 200 }". Messages
  /// call it by the program's name; paths in it are relative to the current folder.
  std::string job = {};
  std::vector<std::string> overrides = {};  ///< "train.steps=10"; later ones win
  std::filesystem::path run_dir = {};       ///< has to be given; made where it is missing
  /// "auto": go on from the run directory's newest whole checkpoint; "never"; or a checkpoint's path
  std::string resume = "auto";
  Device device = kCpu;  ///< what the world's communicator serves
  bool quiet = false;    ///< print errors and the result alone

  /// Makes a model that fits the data. Called several times a run, also within an nn::WithoutValues.
  std::function<std::unique_ptr<nn::Module>(const model_zoo::ModelInput& input)> model = {};
  data::DatasetPtr train_data = {};
  data::DatasetPtr eval_data = {};
  step::Loss loss = {};  ///< in place of train.loss; it adds up the samples' losses and divides by options.divisor
  optim::ScheduleFunction schedule = {};  ///< in place of schedule: the factor of the optimizer's lr
};

/// The state of a run that has ended.
struct TrainerResult {
  ExitCode code = ExitCode::kDone;            ///< kPreempted: a signal asked for a save and an exit
  std::uint64_t step = 0;                     ///< the last one that was trained, here or by the run that was resumed
  std::optional<EvalResult> evaluation = {};  ///< the last one of this run
};

/// `lockstep train` as a part of a program: one rank's run with its run directory, metrics, TensorBoard, progress,
/// evaluation, best weights, early stopping, signals, faults and resume. The processes are there already; a launcher's
/// restarts are not a part of it. What the program gives stands in the run's job as `registered { name: "program's own"
/// }`: only the same program goes on with such a run.
class Trainer {
 public:
  /// `world` outlives this. Throws UsageError where the job cannot be read or does not fit the options, with all that
  /// is wrong, and for comm.timeout_s and comm.shared_memory in the job: the program has made its World by then.
  Trainer(comm::World& world, TrainerOptions options);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// From now on `observer` is told of the run. On each rank that has one: step(), evaluation(), stopped_early(),
  /// learning_rate_reduced() and straggler() say the same on all, at the same point of the run, so they may call
  /// collectives. It outlives this.
  void observe(RunObserver& observer);

  /// Ends run() behind the step after the one at work (on a GPU two) or behind the evaluation at work, saves, evaluates
  /// what was not, and returns kDone. It suffices that one rank calls it; from any thread, observers too.
  void end() { *end_ = true; }

  /// Trains. A collective, on the thread that made the world; signals are the run's until it returns. Throws Error as
  /// the command fails: rank 0 has then recorded it in the run directory. Called again, it goes on where the run is, if
  /// options.resume is "auto".
  TrainerResult run();

 private:
  struct Read;  ///< the job, as resolved

  comm::World& world_;
  const TrainerOptions options_;
  const std::chrono::system_clock::time_point begin_ = std::chrono::system_clock::now();
  const std::shared_ptr<std::atomic<bool>> end_ = std::make_shared<std::atomic<bool>>(false);
  std::vector<RunObserver*> observers_;
  std::unique_ptr<const Read> read_;
};

}  // namespace lockstep::train
