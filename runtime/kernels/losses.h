// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/kernels/pair_loss.h"
#include "runtime/tensor/device.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::kernels {

/// The targets of a cross entropy, their smoothing and their weights.
struct CrossEntropyTargets {
  Tensor classes = {};         ///< [rows] int64
  double label_smoothing = 0;  ///< s, in [0, 1]
  Tensor class_weights = {};   ///< w [C] of the loss's dtype; undefined: ones
  /// v [rows] of the loss's dtype; undefined: ones. A row of weight 0 counts for nothing, whatever its logits.
  Tensor row_weights = {};

  bool weighted() const { return class_weights.defined() || row_weights.defined(); }
};

/// The targets of a connectionist temporal classification of log_probs [N, T, C].
struct CtcTargets {
  Tensor labels = {};          ///< [N, S] int64; those behind a sample's target length are not read
  Tensor input_lengths = {};   ///< [N] int64, in [0, T]
  Tensor target_lengths = {};  ///< [N] int64, in [0, S]
  std::int64_t blank = 0;      ///< a class, and no label
};

/// Losses over the last dimension, and of pairs. Each is a sum, the caller's weight makes a mean of it, but for ctc.
struct Losses {
  /// This family's functions of the backend for tensors on `device`.
  static const Losses& on(Device device);

  /// loss (scalar float32, or float64 for float64 logits) = weight * sum over rows of
  /// v (-(1 - s) w[target] log p[target] - s / C sum_c w[c] log p[c]). log_sum_exp [rows] of loss's dtype is kept for
  /// the backward pass. A target outside [0, C) throws UsageError naming row and value; on a GPU it makes the loss NaN.
  void (*cross_entropy)(const Tensor& logits, const CrossEntropyTargets& targets, double weight, const Tensor& loss,
                        const Tensor& log_sum_exp);
  /// dlogits (logits' dtype) = *dloss * weight * that sum's derivative: without weights softmax - smoothed target.
  /// dloss is a scalar of loss's dtype.
  void (*cross_entropy_backward)(const Tensor& logits, const CrossEntropyTargets& targets, double weight,
                                 const Tensor& log_sum_exp, const Tensor& dloss, const Tensor& dlogits);
  /// loss (scalar float32, or float64 for float64 x) = weight * sum of the function; target has x's shape, and x's
  /// dtype or, beside a 16-bit x, float32.
  void (*pair_loss)(const PairLossFunction& function, const Tensor& x, const Tensor& target, double weight,
                    const Tensor& loss);
  /// gradient (the side's dtype) = *dloss * weight * the function's derivative by the side, computed in the loss's
  /// dtype and rounded once. dloss is a scalar of loss's dtype.
  void (*pair_loss_backward)(const PairLossFunction& function, const Tensor& x, const Tensor& target, PairSide side,
                             double weight, const Tensor& dloss, const Tensor& gradient);
  /// losses [N] (log_probs' dtype) = -log of the probability that a sample's elements spell its labels; infinite where
  /// they are too few. log_probs [N, T, C] are float32, or float64 on the CPU. alpha [N, T, 2 S + 1] float64 is kept
  /// for the backward pass. Lengths, labels and a blank that do not fit throw UsageError; on a GPU they make the loss
  /// NaN.
  void (*ctc)(const Tensor& log_probs, const CtcTargets& targets, const Tensor& losses, const Tensor& alpha);
  /// dlog_probs [N, T, C] = -dlosses[n] * the probability, given that the labels are spelt, of being at a state that
  /// emits the class. 0 behind a sample's elements and where dlosses[n] is 0; NaN for the labels of an infinite loss.
  void (*ctc_backward)(const Tensor& log_probs, const CtcTargets& targets, const Tensor& alpha, const Tensor& dlosses,
                       const Tensor& dlog_probs);
};

}  // namespace lockstep::kernels
