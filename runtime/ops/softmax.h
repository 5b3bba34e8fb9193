// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "runtime/tensor/tensor.h"

namespace lockstep::ops {

/// Over the last dimension.
Tensor softmax(const Tensor& x);
Tensor log_softmax(const Tensor& x);
/// Over any dimension. A named dtype is the result's, whatever autocast says; x is cast to it before.
Tensor softmax(const Tensor& x, int dim, std::optional<DType> dtype = {});
Tensor log_softmax(const Tensor& x, int dim, std::optional<DType> dtype = {});

}  // namespace lockstep::ops
