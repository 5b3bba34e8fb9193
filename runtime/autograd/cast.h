// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/tensor/tensor.h"

namespace lockstep::autograd {

/// `tensor` in another floating dtype; itself when it has that dtype already. The gradient is cast back. A parameter of
/// an arena whose compute copy has the dtype gives that copy, without any work unless the parameter was written since.
[[nodiscard]] Tensor cast(const Tensor& tensor, DType dtype);

/// Rounds a leaf into its compute copy again where it was written since.
void renew_compute_copy(const Tensor& leaf);

}  // namespace lockstep::autograd
