// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "runtime/data/batch.h"
#include "runtime/data/description.h"
#include "runtime/nn/arena.h"
#include "runtime/nn/forward.h"
#include "runtime/optim/optimizer.h"
#include "runtime/train/task.h"

namespace lockstep::job {
class Job;
}

namespace lockstep::train {

/// The job's model for its task, with its initial weights in float32 on the CPU.
std::unique_ptr<nn::Module> build_model(const job::Job& job, const Task& task);

/// A job's model at its opt level, with its loss: what training and evaluation share. The optimizer comes with it,
/// because it owns the state that belongs to the weights.
class Network {
 public:
  /// Builds what `job` describes for samples like these, to train on `device`.
  Network(const job::Job& job, const data::Description& data, Device device);

  nn::Module& model() { return *model_; }
  optim::Optimizer& optimizer() { return *optimizer_; }
  nn::Arena& arena() const { return *model_->arena(); }

  Device device() const { return device_; }
  const Task& task() const { return task_; }

  Tensor forward(const data::Batch& batch) { return nn::forward(*model_, batch.inputs()); }

 private:
  Device device_;
  Task task_;
  std::unique_ptr<nn::Module> model_;
  std::unique_ptr<optim::Optimizer> optimizer_;
};

}  // namespace lockstep::train
