// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/tensor/tensor.h"

namespace lockstep::ops {

/// Over the last dimension.
Tensor softmax(const Tensor& x);
Tensor log_softmax(const Tensor& x);

}  // namespace lockstep::ops
