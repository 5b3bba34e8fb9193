// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/tensor/tensor.h"

// PyTorch's losses as compositions of operations, so that they are differentiable any number of times. The sums of l1,
// smooth_l1, huber and kl_div, and their gradients, are a kernel's; operations serve where a gradient is recorded.
// Under autocast all of them run in float32, and 16-bit inputs are widened to float32 without it too. x [N, ...] and
// target have one shape unless a loss says otherwise; targets may require a gradient where they are floating.

namespace lockstep::ops {

enum class Reduction : std::uint8_t { kMean, kSum, kNone };

struct LossReduction {
  Reduction reduction = Reduction::kMean;
  /// kMean only: what the sum over samples is divided by, beside the elements of a sample; 0: the number of samples
  /// here. A rank's share of a global batch divides by the global count, so that the ranks' losses add up to the
  /// batch's.
  double divisor = 0.0;
};

/// |x - target|
[[nodiscard]] Tensor l1(const Tensor& x, const Tensor& target, const LossReduction& reduction = {});
/// d^2 / (2 beta) where d = |x - target| < beta, else d - beta / 2.
[[nodiscard]] Tensor smooth_l1(const Tensor& x, const Tensor& target, double beta = 1.0,
                               const LossReduction& reduction = {});
/// d^2 / 2 where d = |x - target| <= delta, else delta (d - delta / 2).
[[nodiscard]] Tensor huber(const Tensor& x, const Tensor& target, double delta = 1.0,
                           const LossReduction& reduction = {});
/// target (log target - x), x being log-probabilities; e^target (target - x) where the target is a logarithm too.
[[nodiscard]] Tensor kl_div(const Tensor& x, const Tensor& target, bool log_target = false,
                            const LossReduction& reduction = {});

struct BinaryCrossEntropyOptions : LossReduction {
  Tensor weight = {};      ///< of each element; broadcasts; may be undefined
  Tensor pos_weight = {};  ///< of the positive class, _with_logits only; broadcasts; may be undefined
};
/// -(pos_weight t log s + (1 - t) log(1 - s)), s = sigmoid(x): finite for every finite x.
[[nodiscard]] Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target,
                                                      const BinaryCrossEntropyOptions& options = {});
/// -(t log p + (1 - t) log(1 - p)) of probabilities p in [0, 1], logarithms being at least -100 and the denominator of
/// the gradient at least 1e-12. Throws UsageError under autocast. A p outside [0, 1] gives NaN, no error, as a check
/// would wait for the device.
[[nodiscard]] Tensor binary_cross_entropy(const Tensor& p, const Tensor& target,
                                          const BinaryCrossEntropyOptions& options = {});

struct NllOptions : LossReduction {
  Tensor weight = {};                             ///< of each class, [classes]; may be undefined
  std::optional<std::int64_t> ignore_index = {};  ///< a target that counts for nothing
  Tensor sample_weight = {};                      ///< of each target, of its shape; may be undefined
};
/// -weight[t] x[t], x [..., classes] log-probabilities, targets int64 [...]. The mean divides by the sum of the
/// targets' weights (class_targets.h) unless there is a divisor. A target outside [0, classes) throws UsageError on the
/// CPU and makes the loss NaN on a GPU. Weights have no gradient.
[[nodiscard]] Tensor nll(const Tensor& x, const Tensor& targets, const NllOptions& options = {});

/// x where target is 1, max(0, margin - x) where it is -1.
[[nodiscard]] Tensor hinge_embedding(const Tensor& x, const Tensor& target, double margin = 1.0,
                                     const LossReduction& reduction = {});
/// log(1 + e^(-target x)), target 1 or -1.
[[nodiscard]] Tensor soft_margin(const Tensor& x, const Tensor& target, const LossReduction& reduction = {});
/// max(0, -target (a - b) + margin), target 1 or -1.
[[nodiscard]] Tensor margin_ranking(const Tensor& a, const Tensor& b, const Tensor& target, double margin = 0.0,
                                    const LossReduction& reduction = {});
/// 1 - c where target [N] is 1, max(0, c - margin) where it is -1; c is the cosine of the rows of a and b [N,
/// channels].
[[nodiscard]] Tensor cosine_embedding(const Tensor& a, const Tensor& b, const Tensor& target, double margin = 0.0,
                                      const LossReduction& reduction = {});

struct TripletMarginOptions : LossReduction {
  double margin = 1.0;
  double p = 2.0;     ///< of the norm
  double eps = 1e-6;  ///< added to every difference
  bool swap = false;  ///< the negative's distance is the smaller of those to anchor and positive
};
/// max(0, margin + |anchor - positive| - |anchor - negative|) of rows [..., channels].
[[nodiscard]] Tensor triplet_margin(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                    const TripletMarginOptions& options = {});

struct PoissonNllOptions : LossReduction {
  bool log_input = true;  ///< x is the logarithm of the rate
  bool full = false;      ///< with Stirling's formula for log target! where target > 1
  double eps = 1e-8;      ///< added to a rate before its logarithm is taken
};
/// e^x - target x, or x - target log(x + eps).
[[nodiscard]] Tensor poisson_nll(const Tensor& x, const Tensor& target, const PoissonNllOptions& options = {});

struct MultiMarginOptions : LossReduction {
  int p = 1;  ///< 1 or 2
  double margin = 1.0;
  Tensor weight = {};  ///< of each class, [classes]; may be undefined. The mean divides by the number of samples
};
/// sum over c but the target of max(0, margin - x[t] + x[c])^p weight[t] / classes; x [..., classes], targets int64
/// [...]. A target outside [0, classes) is answered as by nll.
[[nodiscard]] Tensor multi_margin(const Tensor& x, const Tensor& targets, const MultiMarginOptions& options = {});
/// sum over the targets t and the classes c that are none of max(0, 1 - x[t] + x[c]) / classes; x [..., classes],
/// targets int64 of x's shape: classes, up to the first -1 of a row. Takes memory for classes^2 numbers a row.
[[nodiscard]] Tensor multilabel_margin(const Tensor& x, const Tensor& targets, const LossReduction& reduction = {});

/// 1 - (2 sum p t + smooth) / (sum p + sum t + smooth), sums over a sample of p and t [N, ...]: a term a sample.
/// PyTorch has none.
[[nodiscard]] Tensor dice(const Tensor& p, const Tensor& target, double smooth = 1.0,
                          const LossReduction& reduction = {});

}  // namespace lockstep::ops
