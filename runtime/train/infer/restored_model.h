// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "model_zoo/build.h"
#include "runtime/nn/module.h"
#include "runtime/train/saved_model.h"
#include "runtime/train/task.h"

namespace lockstep::job {
class Job;
}

namespace lockstep::train {

/// A job's model with a checkpoint's weights and running statistics, float32 on the CPU.
struct RestoredModel {
  std::string checkpoint;  ///< the one that was read
  bool of_mean = false;    ///< the weights are their running mean
  model_zoo::ModelOptions options;
  Task task;
  std::unique_ptr<nn::Module> model;
};

/// Throws UsageError where the checkpoint is of another model, StorageError.
RestoredModel restored_model(const job::Job& job, const SavedModel& saved);

}  // namespace lockstep::train
