// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/nn/module.h"

namespace lockstep::step {

/// Several replicas of a model on threads of one process, what PyTorch's DataParallel does: each computes a loss of its
/// part of a batch, and their gradients add up in the model's, in the order of the replicas, so that the sum depends on
/// no thread. Ranks, each with a DistributedDataParallel, are the faster way; the two go together.
class Replicas {
 public:
  /// A loss to start a backward pass from, scaled where a GradScaler scales, of replica number `i` and its part. Runs
  /// on that replica's thread: with the caller's amp::Autocast state, without its nn::StepContext. It puts an
  /// nn::FirstSample, or a context, around the forward pass where dropout is to know the samples.
  using Loss = std::function<Tensor(nn::Module& replica, std::size_t i)>;

  /// `build` makes a model like `model`, on the CPU: the same parameters and statistics under the same names, with
  /// 16-bit weights where amp::initialize has made those of `model` 16-bit (O2, O3). `model` must outlive this. Throws
  /// UsageError where names or shapes of parameters differ, for a model on a GPU, and unless count >= 1.
  Replicas(nn::Module& model, const std::function<std::unique_ptr<nn::Module>()>& build, std::size_t count);

  std::size_t size() const { return replicas_.size(); }

  /// Gives each replica the model's weights, statistics and training flag, runs forward and backward passes of all
  /// at the same time, and adds the gradients to the model's, as a backward pass through the model itself would.
  /// Returns the losses, outside the graph. The running statistics of the first replica become the model's pending
  /// ones. An exception of a replica leaves from here, the first replica's first, and the model is left alone. Means
  /// over parts add up to the mean of all where each loss is divided by size().
  std::vector<Tensor> backward(const Loss& loss);

 private:
  void give_weights(nn::Module& replica) const;

  nn::Module& model_;
  std::vector<std::unique_ptr<nn::Module>> replicas_;
};

}  // namespace lockstep::step
