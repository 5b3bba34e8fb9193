// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "model_zoo/model_input.h"
#include "runtime/data/description.h"
#include "runtime/job/job.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::train {

/// What a job has its model learn of its data: what the model must fit, and the loss.
class Task {
 public:
  /// Throws UsageError where the loss does not suit the data.
  Task(const job::Train& train, const data::Description& data);

  const model_zoo::ModelInput& model_input() const { return input_; }
  /// Whether targets are classes.
  bool classifies() const { return input_.classes > 0; }
  /// Whether targets are numbers in [0, 1] of which the model gives the logits.
  bool learns_masks() const;
  /// Whether the loss is not what the targets' likelihood alone makes it.
  bool smooths_labels() const { return label_smoothing_ > 0; }
  /// How many targets of a sample count.
  std::int64_t targets_per_sample() const { return targets_; }

  /// The sum of the samples' losses divided by `divisor`; a sample's is the mean over its targets, and Dice is of a
  /// sample as a whole. output [n, ...] and target [n, target shape...] as the data has it -> float32 scalar. A mask
  /// with a number outside [0, 1] throws UsageError on the CPU.
  Tensor loss(const Tensor& output, const Tensor& target, double divisor) const;

 private:
  Tensor loss_of_masks(const Tensor& output, const Tensor& target, double divisor) const;

  job::LossKind loss_;
  double label_smoothing_;
  std::int64_t targets_;
  model_zoo::ModelInput input_;
};

}  // namespace lockstep::train
