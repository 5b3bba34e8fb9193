// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/tensor/tensor.h"

namespace lockstep::ops {

/// Puts together what the ranks of a group know; how batch norm is synchronised without knowing communication. Called
/// in the same order on every rank, also on a rank without samples.
class StatisticsReducer {
 public:
  virtual ~StatisticsReducer() = default;
  /// packed [2 C + 1] of this rank (mean, m2, rows) -> [ranks, 2 C + 1], in rank order.
  virtual Tensor gather(const Tensor& packed) = 0;
  /// sums [2 C] += those of the other ranks, in place.
  virtual void sum(const Tensor& sums) = 0;
};

struct BatchNormOptions {
  double epsilon = 1e-5;
  double momentum = 0.1;                 ///< weight of the new statistics in the running ones
  bool relu = false;                     ///< max(0, .) behind the normalisation (and the addition)
  StatisticsReducer* reducer = nullptr;  ///< null: the statistics of this tensor alone; outlives the backward pass
};

/// Training: y = gamma (x - mean) / sqrt(var + epsilon) + beta (+ residual), with the statistics of x [..., C] over its
/// rows (of all ranks). gamma, beta [C] and the statistics are float32 (float64 for float64 x); 16-bit gamma and beta
/// are widened. running [2, C] (mean; unbiased variance) is read, next_running receives what it becomes if the step is
/// accepted; both may be undefined. residual has x's shape, or is undefined; it is cast to x's dtype.
[[nodiscard]] Tensor batch_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, const Tensor& residual,
                                const Tensor& running, const Tensor& next_running, const BatchNormOptions& options);
/// Evaluation: the same with the running statistics.
[[nodiscard]] Tensor batch_norm_inference(const Tensor& x, const Tensor& gamma, const Tensor& beta,
                                          const Tensor& residual, const Tensor& running,
                                          const BatchNormOptions& options);

}  // namespace lockstep::ops
