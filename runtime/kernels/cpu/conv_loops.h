// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/geometry/spatial.h"
#include "runtime/tensor/tensor.h"

// The three passes of a float32 convolution by the loops, as products with the patches that the window sees
// (products.h): for where oneDNN has only plain ones. Shapes as in convolution.h.

namespace lockstep::kernels::cpu {

/// bias may be undefined.
void conv_forward_by_loops(const ConvGeometry& geometry, const Tensor& x, const Tensor& weight, const Tensor& bias,
                           const Tensor& y);
void conv_backward_data_by_loops(const ConvGeometry& geometry, const Tensor& dy, const Tensor& weight,
                                 const Tensor& dx);
/// dweight is added to when `add`.
void conv_backward_weights_by_loops(const ConvGeometry& geometry, const Tensor& x, const Tensor& dy, bool add,
                                    const Tensor& dweight);

}  // namespace lockstep::kernels::cpu
