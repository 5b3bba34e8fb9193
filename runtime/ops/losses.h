// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/tensor/tensor.h"

namespace lockstep::ops {

struct LossOptions {
  double label_smoothing = 0.0;  ///< cross_entropy only
  /// The divisor of the sum over samples; 0: the number of samples here (the mean), or 1 where there are none. A rank's
  /// share of a global batch divides by the global count, so that the ranks' losses add up to the batch's.
  double divisor = 0.0;
  // The weights of targets: class_targets.h. The mean of cross_entropy divides by the sum of the targets' weights
  // unless there is a divisor.
  Tensor weight = {};  ///< of each class, [classes]; may be undefined. cross_entropy only
  /// cross_entropy: of each target, of its shape. mse: of each sample, [N]. May be undefined.
  Tensor sample_weight = {};
  std::optional<std::int64_t> ignore_index = {};  ///< a target that counts for nothing; cross_entropy only
};

/// logits [..., classes], targets int64 class indices [...] -> float32 scalar. Logits may be 16-bit: they are read
/// exactly and computed in float32, as autocast's float32 policy asks, without a copy. A target t of weight w[t] v adds
/// v (-(1 - s) w[t] log p[t] - s / classes sum_c w[c] log p[c]), s = label_smoothing, as PyTorch's does. A target
/// outside [0, classes) throws UsageError on the CPU and makes the loss NaN on a GPU. Weights have no gradient.
///
/// Targets may also be probabilities of the classes, floating [..., classes], which have a gradient, too. Each adds
/// -sum_c w[c] ((1 - s) t[c] + s / classes) log p[c]. The mean divides by the number of samples, or by the sum of their
/// weights, whatever the weights of classes are, as PyTorch's does. ignore_index is then a UsageError.
[[nodiscard]] Tensor cross_entropy(const Tensor& logits, const Tensor& targets, const LossOptions& options = {});
/// Mean of (x - target)^2 over all elements; x [N, ...] and target of the same shape -> float32 scalar. `divisor`
/// counts samples: the sum is divided by divisor times the elements of a sample. With a sample_weight [N], which has no
/// gradient, the squares of each sample count times its weight; the mean still divides by the number of samples.
[[nodiscard]] Tensor mse(const Tensor& x, const Tensor& target, const LossOptions& options = {});

}  // namespace lockstep::ops
