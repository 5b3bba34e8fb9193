// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "runtime/kernels/backend.h"
#include "runtime/kernels/cpu/primitive_cache.h"

// The three passes of a convolution in dtypes that oneDNN has primitives for. Activations are plain channels last.
// Weights are brought into the layout that the primitive chose, and weight gradients out of it, at every call: they
// are small beside the activations.

namespace lockstep::kernels::cpu {

enum class ConvPass { kForward, kData, kWeights };

/// The dtype that a pass over tensors of `dtype` is computed in: bfloat16 where oneDNN's own primitive is faster than
/// widening, float32 otherwise.
DType conv_dtype(ConvPass pass, const ConvGeometry& geometry, const Shape& x, const Shape& weight, const Shape& y,
                 DType dtype);

/// y = convolution of x with weight (+ bias). All of one dtype, float32 or bfloat16.
void onednn_forward(const ConvGeometry& geometry, const Tensor& x, const Tensor& weight, const Tensor& bias,
                    const Tensor& y);
/// dx from dy and weight, all of one dtype.
void onednn_backward_data(const ConvGeometry& geometry, const Tensor& dy, const Tensor& weight, const Tensor& dx);
/// dweight (float32), added to when `add`, from x and dy of one dtype.
void onednn_backward_weights(const ConvGeometry& geometry, const Tensor& x, const Tensor& dy, bool add,
                             const Tensor& dweight);

}  // namespace lockstep::kernels::cpu
