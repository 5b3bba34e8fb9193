// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "runtime/data/dataset.h"
#include "runtime/job/job.h"
#include "runtime/nn/arena.h"
#include "runtime/nn/forward.h"
#include "runtime/optim/optimizer.h"

namespace lockstep::train {

/// The job's model, with its initial weights in float32 on the CPU, for samples like those of `dataset`. Throws
/// UsageError where the loss does not suit the data.
std::unique_ptr<nn::Module> build_model(const job::Job& job, const data::Dataset& dataset);

/// A job's model at its opt level, with its loss: what training and evaluation share. The optimizer comes with it,
/// because it owns the state that belongs to the weights.
class Network {
 public:
  /// Builds what `job` describes for samples like those of `dataset`, to train on `device`.
  Network(const job::Job& job, const data::Dataset& dataset, Device device);

  nn::Module& model() { return *model_; }
  optim::Optimizer& optimizer() { return *optimizer_; }
  nn::Arena& arena() const { return *model_->arena(); }

  Device device() const { return device_; }
  /// Whether the loss is that of a classifier.
  bool classifies() const { return classifies_; }

  Tensor forward(const Tensor& input) { return nn::forward(*model_, input); }
  /// The sum of the samples' losses divided by `divisor`.
  Tensor loss(const Tensor& output, const Tensor& target, double divisor) const;

 private:
  Device device_;
  bool classifies_;
  double label_smoothing_;
  std::unique_ptr<nn::Module> model_;
  std::unique_ptr<optim::Optimizer> optimizer_;
};

}  // namespace lockstep::train
