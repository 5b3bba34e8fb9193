// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/tensor/tensor.h"

namespace lockstep::kernels {

/// Losses over the last dimension. Each is a sum; the caller's weight makes a mean of it.
struct Losses {
  /// Class indices targets [rows] int64. loss (scalar float32, or float64 for float64 logits) = weight * sum over rows
  /// of -(1 - s) log p[target] - s / C sum_c log p[c], s = label_smoothing. log_sum_exp [rows] of loss's dtype is kept
  /// for the backward pass. A target outside [0, C) throws UsageError naming row and value.
  void (*cross_entropy)(const Tensor& logits, const Tensor& targets, double label_smoothing, double weight,
                        const Tensor& loss, const Tensor& log_sum_exp);
  /// dlogits (logits' dtype) = *dloss * weight * (softmax - smoothed target); dloss is a scalar of loss's dtype.
  void (*cross_entropy_backward)(const Tensor& logits, const Tensor& targets, double label_smoothing, double weight,
                                 const Tensor& log_sum_exp, const Tensor& dloss, const Tensor& dlogits);
  /// loss (scalar float32, or float64) = weight * sum of (x - target)^2; target has x's shape and dtype.
  void (*mse)(const Tensor& x, const Tensor& target, double weight, const Tensor& loss);
  void (*mse_backward)(const Tensor& x, const Tensor& target, double weight, const Tensor& dloss, const Tensor& dx);
};

}  // namespace lockstep::kernels
