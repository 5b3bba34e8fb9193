// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/task.h"

#include <algorithm>

#include "runtime/ops/composed_losses.h"
#include "runtime/ops/elementwise.h"
#include "runtime/ops/losses.h"
#include "runtime/ops/shape.h"
#include "runtime/ops/unary.h"
#include "runtime/tensor/error.h"

namespace lockstep::train {

namespace {

void require_masks(const Tensor& target) {
  if (target.device() != kCpu) return;
  const auto values = target.as<float>();
  const auto wrong = std::ranges::find_if(values, [](float value) { return !(value >= 0 && value <= 1); });
  if (wrong == values.end()) return;
  throw UsageError("train.loss: masks hold numbers between 0 and 1, found " + std::to_string(*wrong),
                   "Scale the targets, or choose another loss.");
}

}  // namespace

Task::Task(const job::Train& train, const data::Description& data)
    : loss_(train.loss()),
      label_smoothing_(train.label_smoothing()),
      targets_(data.targets_per_sample),
      input_{.sample_shape = data.sample_shape,
             .outputs = data.classes > 0 ? data.classes : data.target_shape.numel(),
             .vocabulary = data.vocabulary,
             .target_shape = data.target_shape,
             .classes = data.classes} {
  const bool needs_classes = loss_ != job::MSE && !learns_masks();
  if (needs_classes == classifies()) return;
  const std::string name = job::LossKind_Name(loss_);
  throw UsageError("train.loss: " + name +
                   (classifies() ? " needs regression data; this data set has classes"
                                 : " needs data with classes; this data set is for regression"));
}

bool Task::learns_masks() const {
  return loss_ == job::BCE_WITH_LOGITS || loss_ == job::DICE || loss_ == job::BCE_DICE;
}

Tensor Task::loss(const Tensor& output, const Tensor& target, double divisor) const {
  if (learns_masks()) return loss_of_masks(output, target, divisor);
  if (!classifies()) return ops::mse(output, target, {0.0, divisor});
  ops::LossOptions options{label_smoothing_, divisor * static_cast<double>(targets_)};
  // One label a sample always counts.
  if (target.shape().rank() > 1) options.ignore_index = data::kIgnoredLabel;
  return ops::cross_entropy(output, target, options);
}

Tensor Task::loss_of_masks(const Tensor& output, const Tensor& target, double divisor) const {
  require_masks(target);
  ops::BinaryCrossEntropyOptions options;
  options.divisor = divisor;
  if (loss_ == job::BCE_WITH_LOGITS) return ops::binary_cross_entropy_with_logits(output, target, options);
  // Probabilities of 16 bits would round before they are added up.
  const Tensor dice = ops::dice(ops::sigmoid(ops::widened(output)), target, 1.0, options);
  return loss_ == job::DICE ? dice : ops::add(ops::binary_cross_entropy_with_logits(output, target, options), dice);
}

}  // namespace lockstep::train
