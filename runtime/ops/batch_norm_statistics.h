// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "runtime/ops/batch_norm.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::ops {

/// What batch norm normalises with.
struct Statistics {
  Tensor mean;     ///< [C]
  Tensor inv_std;  ///< [C], 1 / sqrt(variance + epsilon)
  Tensor count;    ///< scalar, the rows of all ranks; undefined where the statistics are constants
};

/// Of the rows of x on all ranks, in `dtype`; no part of the graph. next_running as in batch_norm().
Statistics statistics_of(const Tensor& x, DType dtype, const Tensor& running, const Tensor& next_running,
                         const BatchNormOptions& options);
/// The running statistics as constants.
Statistics statistics_of_running(const Tensor& running, const BatchNormOptions& options);

/// Those of x as results of an operation on it, so that what is computed with them can be differentiated by x.
Statistics in_graph_of(const Tensor& x, const Statistics& statistics, StatisticsReducer* reducer);
/// a [C] and b [C], each summed over the ranks, in one collective; themselves without a reducer. The gradient is the
/// same sum of the ranks' gradients: another collective on every rank.
std::array<Tensor, 2> sum_over_ranks(const Tensor& a, const Tensor& b, StatisticsReducer* reducer);

}  // namespace lockstep::ops
