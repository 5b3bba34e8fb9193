// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/network.h"

#include "amp/grad_scaler/opt_level.h"
#include "model_zoo/build.h"
#include "runtime/job/make_optimizer.h"
#include "runtime/job/model_options.h"
#include "runtime/job/training_options.h"
#include "runtime/ops/losses.h"
#include "runtime/tensor/error.h"

namespace lockstep::train {

std::unique_ptr<nn::Module> build_model(const job::Job& job, const data::Dataset& dataset) {
  const bool classifies = job.train().loss() != job::MSE;
  if (classifies != (dataset.classes() > 0)) {
    throw UsageError(classifies ? "train.loss: CROSS_ENTROPY needs data with classes; this data set is for regression"
                                : "train.loss: MSE needs regression data; this data set has classes");
  }
  const std::int64_t outputs = classifies ? dataset.classes() : dataset.target_shape().numel();
  return model_zoo::build(job::model_options(job.model()), {dataset.sample_shape(), outputs}, job.seed());
}

Network::Network(const job::Job& job, const data::Dataset& dataset, Device device)
    : device_(device),
      classifies_(job.train().loss() != job::MSE),
      label_smoothing_(job.train().label_smoothing()),
      model_(build_model(job, dataset)) {
  optimizer_ = job::make_optimizer(job.optimizer(), model_->parameters());
  amp::initialize(*model_, *optimizer_, job::amp_options(job.amp()), device);
}

Tensor Network::loss(const Tensor& output, const Tensor& target, double divisor) const {
  if (classifies_) return ops::cross_entropy(output, target, {label_smoothing_, divisor});
  return ops::mse(output, target, {0.0, divisor});
}

}  // namespace lockstep::train
