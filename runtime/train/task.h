// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "model_zoo/model_input.h"
#include "runtime/data/batch.h"
#include "runtime/data/description.h"
#include "runtime/step/training_step.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::job {
enum LossKind : int;
class Train;
}  // namespace lockstep::job

namespace lockstep::train {

/// The task of a job: the shapes that its model must fit, and the loss.
class Task {
 public:
  /// Throws UsageError where the loss does not suit the data, and FieldError where the weights of classes are not one a
  /// class, or where masks are normalised. `device`: where losses are computed.
  Task(const job::Train& train, const data::Description& data, Device device = kCpu);

  const model_zoo::ModelInput& model_input() const { return input_; }
  /// Whether targets are classes.
  bool classifies() const { return input_.classes > 0; }
  /// Whether targets are numbers in [0, 1] of which the model gives the logits.
  bool learns_masks() const;
  /// Whether the model gives numbers that are compared with those of the targets: MSE.
  bool learns_numbers() const { return registered_ == nullptr && !classifies() && !learns_masks(); }
  /// Of the training targets; its scale is undone in whatever is shown of targets and answers.
  const data::TargetSummary& target_summary() const { return target_summary_; }
  /// Whether a loss of classes is the plain negative log-likelihood: no smoothing, no weights, no registered loss.
  bool learns_likelihood() const { return learns_likelihood_; }
  /// How many targets of a sample count.
  std::int64_t targets_per_sample() const { return targets_; }

  /// Throws UsageError where a registered loss was not made for such an output of the model, [n, ...]: of classes the
  /// metrics need [n, target shape..., classes or more].
  void require_output(const Shape& output) const;

  /// The sum of the samples' losses divided by `divisor`; a sample's is the mean over its targets, each times the
  /// weight of its class, and Dice is of a sample as a whole. output [n, ...] and target [n, target shape...] as the
  /// data has it -> float32 scalar. `sample_weight` [n] float32, what each sample's loss is multiplied by, may be
  /// undefined. A mask with a number outside [0, 1] throws UsageError on the CPU.
  Tensor loss(const Tensor& output, const Tensor& target, double divisor, const Tensor& sample_weight = {}) const;
  /// The loss of a batch; where its samples are mixtures, of both labels.
  Tensor loss(const Tensor& output, const data::Batch& batch, double divisor) const;

 private:
  Tensor loss_of_masks(const Tensor& output, const Tensor& target, double divisor, const Tensor& sample_weight) const;

  step::Loss registered_;  ///< in place of loss_; null: none
  job::LossKind loss_;
  double label_smoothing_;
  Tensor class_weight_;  ///< float32 [classes] on the device; undefined: 1 each
  bool learns_likelihood_;
  std::int64_t targets_;
  model_zoo::ModelInput input_;
  data::TargetSummary target_summary_;
};

}  // namespace lockstep::train
