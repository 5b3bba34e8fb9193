// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/tensor/tensor.h"

namespace lockstep::ops {

/// x, of any dtype, broadcast to `shape` by NumPy's rules: a copy. Its gradient is sum_to().
[[nodiscard]] Tensor expand(const Tensor& x, const Shape& shape);
/// The sum of x over whatever broadcasting a tensor of `shape` to x's shape repeats, in a fixed order. Its gradient is
/// expand().
[[nodiscard]] Tensor sum_to(const Tensor& x, const Shape& shape);
/// The sum over the last dimension, which stays with extent 1.
[[nodiscard]] Tensor sum_of_rows(const Tensor& x);

}  // namespace lockstep::ops
