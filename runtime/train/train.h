// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "comm/group/world.h"
#include "runtime/base/error.h"
#include "runtime/job/job.h"
#include "runtime/train/record/eval_result.h"
#include "runtime/train/record/train_options.h"
#include "runtime/train/saved_model.h"

namespace lockstep::train {

/// Where a run that has come to this step is: "in step 5", or "during start-up".
std::string place_at(std::uint64_t step);

/// Trains the job on all ranks of `world`: the loop, evaluation, metrics, checkpoints, signals. Returns kDone, or
/// kPreempted when SIGTERM, SIGINT or SIGUSR1 asked for a save and an exit. Rank 0 records the end, a failure too, in
/// the run directory. A collective; throws Error.
ExitCode train(comm::World& world, const TrainOptions& given);

struct EvalOptions {
  SavedModel saved;
  Device device = kCpu;
  bool confusion = false;  ///< count how often each class is taken for each
  /// Where pictures of samples go, of images: runtime/train/pictures.h; empty: nowhere.
  std::filesystem::path pictures = {};
  std::int64_t picture_count = 16;
};

/// Evaluates a checkpoint on the job's evaluation data. A collective; throws Error.
EvalResult evaluate(comm::World& world, const job::Job& job, const EvalOptions& options);

}  // namespace lockstep::train
