// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "runtime/tensor/tensor.h"

namespace lockstep::ops {

/// Softmax over the last dimension, and its logarithm.
[[nodiscard]] Tensor softmax(const Tensor& x);
[[nodiscard]] Tensor log_softmax(const Tensor& x);
/// The gradient of softmax, y (dy - sum of y dy), from its output y, made of operations.
[[nodiscard]] Tensor softmax_gradient(const Tensor& y, const Tensor& dy);
/// Softmax over any dimension. A named dtype is the result's, whatever autocast says; x is cast to it first.
[[nodiscard]] Tensor softmax(const Tensor& x, int dim, std::optional<DType> dtype = {});
[[nodiscard]] Tensor log_softmax(const Tensor& x, int dim, std::optional<DType> dtype = {});

}  // namespace lockstep::ops
