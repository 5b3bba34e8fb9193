// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "amp/grad_scaler/opt_level.h"
#include "comm/group/communicator.h"
#include "configs/job.pb.h"
#include "runtime/data/batch.h"
#include "runtime/data/dataset.h"
#include "runtime/nn/module.h"
#include "runtime/ops/losses.h"
#include "runtime/optim/optimizer.h"
#include "runtime/train/train.h"

namespace lockstep::train {

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

  Tensor forward(const Tensor& input) { return amp::forward(*model_, input, properties_); }
  /// The sum of the samples' losses divided by `divisor`.
  Tensor loss(const Tensor& output, const Tensor& target, double divisor) const;

  /// Exact averages over the data set, whatever the ranks' shares; nothing where `stop` said on any rank that it must
  /// end. A collective; leaves the model in training mode.
  std::optional<EvalResult> evaluate(const data::DatasetPtr& dataset, std::int64_t batch,
                                     comm::Communicator& communicator, const std::function<bool()>& stop);

 private:
  Device device_;
  bool classifies_;
  double label_smoothing_;
  amp::OptLevelProperties properties_;
  std::unique_ptr<nn::Module> model_;
  std::unique_ptr<optim::Optimizer> optimizer_;
};

}  // namespace lockstep::train
