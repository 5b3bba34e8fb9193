// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/task.h"

#include "runtime/ops/losses.h"
#include "runtime/tensor/error.h"

namespace lockstep::train {

Task::Task(const job::Train& train, const data::Description& data)
    : classifies_(train.loss() != job::MSE),
      label_smoothing_(train.label_smoothing()),
      targets_(data.targets_per_sample),
      input_{.sample_shape = data.sample_shape,
             .outputs = classifies_ ? data.classes : data.target_shape.numel(),
             .vocabulary = data.vocabulary,
             .target_shape = data.target_shape} {
  if (classifies_ == (data.classes > 0)) return;
  throw UsageError(classifies_ ? "train.loss: CROSS_ENTROPY needs data with classes; this data set is for regression"
                               : "train.loss: MSE needs regression data; this data set has classes");
}

Tensor Task::loss(const Tensor& output, const Tensor& target, double divisor) const {
  if (!classifies_) return ops::mse(output, target, {0.0, divisor});
  ops::LossOptions options{label_smoothing_, divisor * static_cast<double>(targets_)};
  // One label a sample always counts.
  if (target.shape().rank() > 1) options.ignore_index = data::kIgnoredLabel;
  return ops::cross_entropy(output, target, options);
}

}  // namespace lockstep::train
