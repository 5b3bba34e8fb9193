// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "comm/group/communicator.h"
#include "runtime/nn/module.h"
#include "runtime/step/saved_tensors.h"
#include "runtime/tensor/tensor.h"
#include "runtime/train/task.h"

namespace lockstep::checkpoint {
struct Checkpoint;
}
namespace lockstep::job {
class Job;
}

namespace lockstep::train {

/// A model that is not trained, with the weights of rank 0's checkpoint.
class DeployedModel {
 public:
  /// `saved`: on rank 0. A collective. Throws UsageError where the checkpoint is of another model, StorageError.
  DeployedModel(const job::Job& job, const Task& task, const checkpoint::Checkpoint& saved, step::Weights weights,
                DType dtype, Device device, comm::Communicator& communicator);

  std::int64_t weight_bytes() const;

  /// float32 on the CPU; waits for it.
  Tensor predict(std::span<const Tensor> inputs);

  double samples_per_s() const { return seconds_ > 0 ? samples_ / seconds_ : 0.0; }

 private:
  std::unique_ptr<nn::Module> model_;
  int passes_ = 0;
  double samples_ = 0;
  double seconds_ = 0;
};

}  // namespace lockstep::train
