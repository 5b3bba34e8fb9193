// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/dim_reductions.h"
#include "runtime/ops/dims.h"

namespace lockstep::ops {

/// factor * the sum of term(x) over the marked dimensions, which stay with extent 1; no part of the graph. Rounded
/// once, to `dtype`.
[[nodiscard]] Tensor sum_over(const Tensor& x, const DimSet& dims, kernels::Term term, double factor, DType dtype);

}  // namespace lockstep::ops
