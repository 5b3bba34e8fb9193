// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/tensor/tensor.h"

namespace lockstep::ops {

/// x under another shape of as many elements; shares the data.
[[nodiscard]] Tensor reshape(const Tensor& x, const Shape& shape);
/// [N, ...] -> [N, everything else]; shares the data.
[[nodiscard]] Tensor flatten(const Tensor& x);
/// A dimension of extent 1 before dimension `dim` of x, or behind the last one; shares the data. Negative: counted from
/// the end of the result.
[[nodiscard]] Tensor unsqueeze(const Tensor& x, int dim);
/// Without the dimensions of extent 1; shares the data.
[[nodiscard]] Tensor squeeze(const Tensor& x);
/// Without dimension `dim` where its extent is 1, otherwise as it is; shares the data.
[[nodiscard]] Tensor squeeze(const Tensor& x, int dim);
/// x in another floating dtype; the gradient is cast back. Shares the data where the dtype is the same.
[[nodiscard]] Tensor cast(const Tensor& x, DType dtype);
/// The dtype in which a formula of several operations computes, so that its result is rounded once: float32 for the
/// 16-bit dtypes, else the dtype itself.
[[nodiscard]] inline DType wide_of(DType dtype) { return is_reduced(dtype) ? DType::kFloat32 : dtype; }
/// x cast to wide_of() its dtype; undefined where x is.
[[nodiscard]] Tensor widened(const Tensor& x);

}  // namespace lockstep::ops
