// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/kernels/attention.h"
#include "runtime/ops/attention.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::ops {

/// The sizes of one call, and the shapes in which the kernel and the composition see its tensors.
struct AttentionExtents {
  std::int64_t batch, heads, kv_heads, queries, keys, channels, value_channels;

  Shape q() const { return {batch, heads, queries, channels}; }
  Shape k() const { return {batch, kv_heads, keys, channels}; }
  Shape v() const { return {batch, kv_heads, keys, value_channels}; }
  Shape out() const { return {batch, heads, queries, value_channels}; }
  Shape scores() const { return {batch, heads, queries, keys}; }
  Shape norms() const { return {batch, heads, queries, 2}; }
  /// Batches of matrices: the heads of q that share a head of k lie one behind the other.
  Shape rows(std::int64_t columns) const {
    return {batch * kv_heads, kv_heads > 0 ? heads / kv_heads * queries : 0, columns};
  }
  Shape columns(std::int64_t of_row) const { return {batch * kv_heads, keys, of_row}; }
};

/// A mask's shape as [batch or 1, heads or 1, Tq or 1, Tk], beside q of this shape. Throws ShapeError where it does not
/// broadcast to the scores.
Shape mask_shape(const Tensor& mask, const Shape& q, const AttentionExtents& extents);

/// One attention: its sizes, and how its scores are made. Made of operations too, in float32 or float64, with autocast
/// off.
struct AttentionComposition {
  AttentionExtents extents;
  double scale;
  bool causal;
  kernels::AttentionDropout dropout;

  /// With the options' scale or that of the channels, for `samples` in the first dimension.
  AttentionComposition(const AttentionExtents& extents, const AttentionOptions& options, std::int64_t samples);

  /// The same for a kernel. The mask as mask_shape() has it, or undefined.
  kernels::AttentionScores scores(const Tensor& mask) const {
    return {.scale = scale, .causal = causal, .mask = mask, .dropout = dropout};
  }

  /// p = e^(s - m) / sum e^(s - m), [batch * kv_heads, rows, keys]. m is near the largest s, or the
  /// logarithm of the sum; it is a constant, since p does not depend on it.
  Tensor probabilities(const Tensor& q, const Tensor& k, const Tensor& mask, const Tensor& norms) const;
  /// Applies the dropout of the probabilities to x [batch * kv_heads, rows, keys].
  Tensor dropped(const Tensor& x) const;
  /// Those of q, k and v, as matrices of rows or columns.
  std::vector<Tensor> gradients(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                                const Tensor& norms, const Tensor& dout) const;

  Tensor as_rows(const Tensor& x) const;
  Tensor as_columns(const Tensor& x) const;
};

}  // namespace lockstep::ops
