// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/geometry/spatial.h"
#include "runtime/tensor/tensor.h"

// The three passes of a convolution of one group as products of matrices with the patches that the window sees
// (conv_patches.h). Patches are gathered for some images at a time, so few that they fit the cache, and more where the
// weights are large. Tensors of one dtype, float32 or a 16-bit one. Shapes as in convolution.h.

namespace lockstep::kernels::cpu {

/// bias may be undefined.
void conv_forward_by_products(const ConvGeometry& geometry, const Tensor& x, const Tensor& weight, const Tensor& bias,
                              const Tensor& y);
void conv_backward_data_by_products(const ConvGeometry& geometry, const Tensor& dy, const Tensor& weight,
                                    const Tensor& dx);
/// dweight (float32) is added to when `add`.
void conv_backward_weights_by_products(const ConvGeometry& geometry, const Tensor& x, const Tensor& dy, bool add,
                                       const Tensor& dweight);

}  // namespace lockstep::kernels::cpu
