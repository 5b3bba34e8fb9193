// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/network.h"

#include "model_zoo/build.h"
#include "runtime/autograd/grad_mode.h"
#include "runtime/data/eval_batches.h"
#include "runtime/job/make_optimizer.h"
#include "runtime/job/model_options.h"
#include "runtime/job/training_options.h"
#include "runtime/kernels/backend.h"
#include "runtime/tensor/error.h"

namespace lockstep::train {

namespace {

/// How many rows have their highest logit at the target (on the CPU); the first one on ties. NaN is never right.
std::int64_t count_correct(const Tensor& device_logits, const Tensor& targets) {
  const Tensor logits = device_logits.to(kCpu);
  const Tensor values = Tensor::empty(logits.shape(), DType::kFloat32);
  kernels::backend(kCpu).cast(logits, values);
  const auto classes = static_cast<std::size_t>(logits.shape().back());
  const auto row = values.as<float>();
  std::int64_t correct = 0;
  for (std::size_t i = 0; i < targets.as<std::int64_t>().size(); ++i) {
    std::size_t best = 0;
    for (std::size_t c = 1; c < classes; ++c) {
      if (row[i * classes + c] > row[i * classes + best]) best = c;
    }
    const bool number = row[i * classes + best] == row[i * classes + best];
    correct += number && static_cast<std::int64_t>(best) == targets.as<std::int64_t>()[i] ? 1 : 0;
  }
  return correct;
}

bool any_rank(bool mine, comm::Communicator& communicator) {
  const Tensor flag = Tensor::from<float>({mine ? 1.0f : 0.0f}, {1});
  communicator.all_reduce(flag, comm::ReduceOp::kMax, 1.0f, Stream::calling_thread());
  return flag.item() != 0.0;
}

}  // namespace

Network::Network(const job::Job& job, const data::Dataset& dataset, Device device)
    : device_(device),
      classifies_(job.train().loss() != job::MSE),
      label_smoothing_(job.train().label_smoothing()),
      properties_(amp::properties_of(job::amp_options(job.amp()))) {
  if (classifies_ != (dataset.classes() > 0)) {
    throw UsageError(classifies_ ? "train.loss: CROSS_ENTROPY needs data with classes; this data set is for regression"
                                 : "train.loss: MSE needs regression data; this data set has classes");
  }
  const std::int64_t outputs = classifies_ ? dataset.classes() : dataset.target_shape().numel();
  model_ = model_zoo::build(job::model_options(job.model()), {dataset.sample_shape(), outputs}, job.seed());
  optimizer_ = job::make_optimizer(job.optimizer(), model_->parameters());
  amp::initialize(*model_, *optimizer_, job::amp_options(job.amp()), device);
}

Tensor Network::loss(const Tensor& output, const Tensor& target, double divisor) const {
  if (classifies_) return ops::cross_entropy(output, target, {label_smoothing_, divisor});
  return ops::mse(output, target, {0.0, divisor});
}

std::optional<EvalResult> Network::evaluate(const data::DatasetPtr& dataset, std::int64_t batch,
                                            comm::Communicator& communicator, const std::function<bool()>& stop) {
  const autograd::NoGrad no_grad;
  model_->train(false);
  const data::EvalBatches batches(dataset, batch, communicator.rank(), communicator.size());
  double loss_sum = 0;
  std::int64_t correct = 0, samples = 0;
  bool stopped = false;
  for (std::int64_t i = 0; i < batches.size() && !stopped; ++i) {
    // Also keeps the ranks together: one with fewer samples must not take the others for lost.
    stopped = any_rank(stop(), communicator);
    const data::Batch share = batches[i];
    if (stopped || share.input.size(0) == 0) continue;
    const Tensor output = forward(share.input.to(device_));
    loss_sum += loss(output, share.target.to(device_), 1.0).item();
    if (classifies_) correct += count_correct(output, share.target);
    samples += share.input.size(0);
  }
  model_->train(true);
  if (stopped) return std::nullopt;
  const Tensor sums = Tensor::from<double>({loss_sum, static_cast<double>(correct), static_cast<double>(samples)}, {3});
  communicator.all_reduce(sums, comm::ReduceOp::kSum, 1.0f, Stream::calling_thread());
  EvalResult result;
  result.samples = static_cast<std::int64_t>(sums.item(2));
  result.loss = sums.item(0) / sums.item(2);
  if (classifies_) result.accuracy = sums.item(1) / sums.item(2);
  return result;
}

}  // namespace lockstep::train
