// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/tensor/tensor.h"

namespace lockstep::ops {

/// The sum, and the mean, of all elements, as a scalar of x's dtype. The mean of nothing is 0.
Tensor sum(const Tensor& x);
Tensor mean(const Tensor& x);

}  // namespace lockstep::ops
