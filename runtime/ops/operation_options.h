// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/autograd/movement.h"
#include "runtime/kernels/binary.h"

// The options of operations, their arguments beside tensors, which they note for whoever writes their graph down
// (autograd::note_options). linear notes its Activation; conv and conv_transpose their ConvGeometry; pooling
// and upsampling their geometries; a function of one number its kernels::UnaryFunction. The others are here.

namespace lockstep::ops {

/// matmul
struct MatmulOptions {
  bool transpose_a = false;
  bool transpose_b = false;
};

/// batch_norm with running statistics, [2, C], which it notes as another input.
struct InferenceNormOptions {
  double epsilon = 0;
  bool relu = false;
};

/// layer_norm, rms_norm: over the last `dims` dimensions. group_norm, instance_norm: `groups` of the channels.
struct NormalizationOptions {
  double epsilon = 0;
  int dims = 0;
  std::int64_t groups = 0;
};

/// scaled_dot_product_attention, packed_attention; the mask, [batch or 1, heads or 1, Tq or 1, Tk], is another input.
struct ScoreOptions {
  double scale = 1;
  bool causal = false;
  // Of packed_attention:
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
};

/// slice, and Tensor::rows()
using autograd::SliceOptions;

/// cat, index_select, gather; the two last note their indices as another input.
struct AlongOptions {
  int dim = 0;
};

/// softmax, log_softmax
struct SoftmaxOptions {
  bool last = true;  ///< along the last dimension; else along the middle one of three
};

/// permute
struct PermuteOptions {
  std::vector<int> order;
};

/// A function of two numbers, of which one may be no tensor: add, sub, mul, div, pow, compare.
struct BinaryOptions {
  kernels::Binary function = kernels::Binary::kAdd;
  bool with_number = false;
  double number = 0;
  bool number_first = false;
};

/// scale
struct ScaleOptions {
  double factor = 1;
};

/// embedding: its indices are another input.
struct EmbeddingOptions {};

/// rotary: x * cos + x with its halves exchanged * sin; the two are other inputs.
struct RotaryOptions {};

}  // namespace lockstep::ops
