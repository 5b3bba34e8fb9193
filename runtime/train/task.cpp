// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/task.h"

#include <algorithm>
#include <span>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/job/job.h"
#include "runtime/job/training_options.h"
#include "runtime/ops/broadcast.h"
#include "runtime/ops/composed_losses.h"
#include "runtime/ops/elementwise.h"
#include "runtime/ops/losses.h"
#include "runtime/ops/reduce.h"
#include "runtime/ops/shape.h"
#include "runtime/ops/unary.h"
#include "runtime/step/registered_loss.h"

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

Tensor class_weight_of(const job::Train& train, Device device) {
  std::vector<float> weights;
  for (const double weight : train.class_weight()) weights.push_back(static_cast<float>(weight));
  return weights.empty() ? Tensor() : Tensor::from(weights, {std::ssize(weights)}).to(device);
}

step::Loss registered_loss_of(const job::Train& train) {
  const auto call = job::registered_loss(train);
  return call ? step::make_registered_loss(*call) : nullptr;
}

/// Weights [n] as a tensor [n, 1, ...] of this rank.
Tensor column(const Tensor& weights, int rank) {
  std::vector<std::int64_t> extents(static_cast<std::size_t>(rank), 1);
  extents.front() = weights.numel();
  return weights.reshaped(Shape(std::span<const std::int64_t>(extents)));
}

Tensor weighted_dice(const Tensor& probabilities, const Tensor& target, double divisor, const Tensor& sample_weight) {
  const Tensor terms = ops::dice(probabilities, target, 1.0, {.reduction = ops::Reduction::kNone});
  return ops::scale(ops::sum(ops::mul(terms, sample_weight)), 1.0 / divisor);
}

}  // namespace

Task::Task(const job::Train& train, const data::Description& data, Device device)
    : registered_(registered_loss_of(train)),
      loss_(train.loss()),
      label_smoothing_(train.label_smoothing()),
      class_weight_(class_weight_of(train, device)),
      learns_likelihood_(registered_ == nullptr && label_smoothing_ == 0 && !class_weight_.defined() && !data.weighted),
      targets_(data.targets_per_sample),
      input_{.sample_shape = data.sample_shape,
             .outputs = data.classes > 0 ? data.classes : data.target_shape.numel(),
             .vocabulary = data.vocabulary,
             .target_shape = data.target_shape,
             .classes = data.classes,
             .more_inputs = data.more_inputs},
      target_summary_(data.target_summary) {
  if (learns_masks() && !target_summary_.scale.is_none()) {
    throw FieldError("data.normalize_target",
                     "is for MSE: the masks of " + job::LossKind_Name(loss_) + " are numbers between 0 and 1");
  }
  if (registered_ != nullptr) return;
  const bool needs_classes = loss_ != job::MSE && !learns_masks();
  if (needs_classes && classifies() && class_weight_.defined() && class_weight_.numel() != data.classes) {
    throw FieldError("train.class_weight", "has " + std::to_string(class_weight_.numel()) + " numbers, but the data " +
                                               std::to_string(data.classes) + " classes");
  }
  if (needs_classes == classifies()) return;
  const std::string name = job::LossKind_Name(loss_);
  throw UsageError("train.loss: " + name +
                   (classifies() ? " needs regression data; this data set has classes"
                                 : " needs data with classes; this data set is for regression"));
}

bool Task::learns_masks() const {
  return registered_ == nullptr && (loss_ == job::BCE_WITH_LOGITS || loss_ == job::DICE || loss_ == job::BCE_DICE);
}

void Task::require_output(const Shape& output) const {
  if (registered_ == nullptr || !classifies()) return;
  const int rank = input_.target_shape.rank() + 2;
  bool fits = output.rank() == rank && output.back() >= input_.classes;
  for (int d = 0; fits && d < input_.target_shape.rank(); ++d) fits = output[d + 1] == input_.target_shape[d];
  if (fits) return;
  throw UsageError("the model's output " + output.str() + " has no number for each of the " +
                       std::to_string(input_.classes) + " classes of a target",
                   "Give outputs of shape [samples, target shape..., classes].");
}

Tensor Task::loss(const Tensor& output, const Tensor& target, double divisor, const Tensor& sample_weight) const {
  if (registered_ != nullptr) return registered_(output, target, {.divisor = divisor, .sample_weight = sample_weight});
  if (learns_masks()) return loss_of_masks(output, target, divisor, sample_weight);
  if (!classifies()) return ops::mse(output, target, {.divisor = divisor, .sample_weight = sample_weight});
  ops::LossOptions options{.label_smoothing = label_smoothing_,
                           .divisor = divisor * static_cast<double>(targets_),
                           .weight = class_weight_,
                           .sample_weight = sample_weight};
  if (target.shape().rank() > 1) {
    // One label a sample always counts.
    options.ignore_index = data::kIgnoredLabel;
    if (sample_weight.defined()) {
      options.sample_weight = ops::expand(column(sample_weight, target.shape().rank()), target.shape());
    }
  }
  return ops::cross_entropy(output, target, options);
}

Tensor Task::loss(const Tensor& output, const data::Batch& batch, double divisor) const {
  const Tensor loss = this->loss(output, batch.target, divisor, batch.weight);
  if (!batch.other_target.defined()) return loss;
  return ops::add(loss, this->loss(output, batch.other_target, divisor, batch.other_weight));
}

Tensor Task::loss_of_masks(const Tensor& output, const Tensor& target, double divisor,
                           const Tensor& sample_weight) const {
  require_masks(target);
  ops::BinaryCrossEntropyOptions options;
  options.divisor = divisor;
  if (sample_weight.defined()) options.weight = column(sample_weight, output.shape().rank());
  if (loss_ == job::BCE_WITH_LOGITS) return ops::binary_cross_entropy_with_logits(output, target, options);
  // Probabilities of 16 bits would round before they are added up.
  const Tensor probabilities = ops::sigmoid(ops::widened(output));
  const Tensor dice = sample_weight.defined() ? weighted_dice(probabilities, target, divisor, sample_weight)
                                              : ops::dice(probabilities, target, 1.0, options);
  return loss_ == job::DICE ? dice : ops::add(ops::binary_cross_entropy_with_logits(output, target, options), dice);
}

}  // namespace lockstep::train
