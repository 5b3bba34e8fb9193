// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/tensor/tensor.h"

namespace lockstep::ops {

/// The same elements under another shape; shares the data.
Tensor reshape(const Tensor& x, const Shape& shape);
/// [N, ...] -> [N, everything else]; shares the data.
Tensor flatten(const Tensor& x);
/// x in another floating dtype; the gradient is cast back. Shares the data where the dtype is the same.
Tensor cast(const Tensor& x, DType dtype);
/// x in float32 where it has 16 bits, else x: what a formula of several operations computes in, so that its result is
/// rounded once.
Tensor widened(const Tensor& x);

}  // namespace lockstep::ops
