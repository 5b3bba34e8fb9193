// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "runtime/kernels/cpu/primitive_cache.h"
#include "runtime/kernels/geometry/spatial.h"
#include "runtime/tensor/tensor.h"

// The three passes of a convolution in dtypes that oneDNN has primitives for. Tensors are plain channels last. Every
// call reorders weights, and for some algorithms activations too, to and from the layout that a primitive chose.
// Weights are small beside the activations.

namespace lockstep::kernels::cpu {

enum class ConvPass { kForward, kData, kWeights };

/// The dtype that a pass over tensors of `dtype` is computed in: bfloat16 where the processor multiplies it faster than
/// what it is widened to, float32 otherwise.
DType conv_dtype(ConvPass pass, const ConvGeometry& geometry, const Shape& x, const Shape& y, DType dtype);

/// How a pass multiplies.
enum class ConvAlgorithm {
  kDirect,
  /// Direct, on activations that were brought into oneDNN's blocks of channels.
  kDirectBlocked,
  /// F(4x4, 3x3) of Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2016: a quarter of the
  /// multiplications, between transforms of x, weight and y. It rounds about 5 times as coarsely as sums of products
  /// (1e-6 of the result's root mean square), and a number that is not finite spreads over its tile of 6 x 6. Where
  /// oneDNN has no kernel for it, as without AVX-512, the pass is direct.
  kWinograd,
  /// As products of matrices with gathered patches (conv_products.h).
  kProducts,
};

/// Whether a pass in bfloat16 is fastest as a product of matrices. Where the processor multiplies `tiles`, oneDNN's
/// convolutions fill one with pixels of one row of one image, products with those of any; elsewhere its convolutions
/// are slower only on the shortest rows. The bounds were measured on a Xeon with AMX (Emerald Rapids) and an EPYC (Zen
/// 4).
bool multiplies_matrices(ConvPass pass, const ConvGeometry& geometry, const Shape& x, const Shape& weight,
                         const Shape& y, bool tiles);

/// The fastest one for a pass that is computed in `dtype`. Decided for a whole batch, so that its images are computed
/// alike.
ConvAlgorithm conv_algorithm(ConvPass pass, const ConvGeometry& geometry, const Shape& x, const Shape& weight,
                             const Shape& y, DType dtype);

/// y = convolution of x with weight (+ bias). All of one dtype, float32 or bfloat16.
void onednn_forward(ConvAlgorithm algorithm, const ConvGeometry& geometry, const Tensor& x, const Tensor& weight,
                    const Tensor& bias, const Tensor& y);
/// dx from dy and weight, all of one dtype.
void onednn_backward_data(ConvAlgorithm algorithm, const ConvGeometry& geometry, const Tensor& dy, const Tensor& weight,
                          const Tensor& dx);
/// dweight (float32), added to when `add`, from x and dy of one dtype.
void onednn_backward_weights(ConvAlgorithm algorithm, const ConvGeometry& geometry, const Tensor& x, const Tensor& dy,
                             bool add, const Tensor& dweight);

}  // namespace lockstep::kernels::cpu
