// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/tensor/tensor.h"

namespace lockstep::kernels {

/// What a cross entropy compares its rows with.
struct CrossEntropyTargets {
  Tensor classes = {};         ///< [rows] int64
  double label_smoothing = 0;  ///< s, in [0, 1]
  Tensor class_weights = {};   ///< w [C] of the loss's dtype; undefined: ones
  /// v [rows] of the loss's dtype; undefined: ones. A row of weight 0 counts for nothing, whatever its logits.
  Tensor row_weights = {};

  bool weighted() const { return class_weights.defined() || row_weights.defined(); }
};

/// Losses over the last dimension. Each is a sum; the caller's weight makes a mean of it.
struct Losses {
  /// loss (scalar float32, or float64 for float64 logits) = weight * sum over rows of
  /// v (-(1 - s) w[target] log p[target] - s / C sum_c w[c] log p[c]). log_sum_exp [rows] of loss's dtype is kept for
  /// the backward pass. A target outside [0, C) throws UsageError naming row and value; on a GPU it makes the loss NaN.
  void (*cross_entropy)(const Tensor& logits, const CrossEntropyTargets& targets, double weight, const Tensor& loss,
                        const Tensor& log_sum_exp);
  /// dlogits (logits' dtype) = *dloss * weight * that sum's derivative: without weights softmax - smoothed target.
  /// dloss is a scalar of loss's dtype.
  void (*cross_entropy_backward)(const Tensor& logits, const CrossEntropyTargets& targets, double weight,
                                 const Tensor& log_sum_exp, const Tensor& dloss, const Tensor& dlogits);
  /// loss (scalar float32, or float64) = weight * sum of (x - target)^2; target has x's shape and dtype.
  void (*mse)(const Tensor& x, const Tensor& target, double weight, const Tensor& loss);
  void (*mse_backward)(const Tensor& x, const Tensor& target, double weight, const Tensor& dloss, const Tensor& dx);
};

}  // namespace lockstep::kernels
