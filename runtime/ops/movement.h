// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/ops/dims.h"
#include "runtime/tensor/tensor.h"

// Operations that move elements and compute nothing. Tensors are dense, so each result is a copy; of the operations on
// shapes, those of shape.h share the data. Any dtype; a gradient flows through floating ones. Wrong dimensions throw
// ShapeError.

namespace lockstep::ops {

/// Dimension d of the result is dimension order[d] of x.
[[nodiscard]] Tensor permute(const Tensor& x, const Dims& order);
/// x with two dimensions exchanged.
[[nodiscard]] Tensor transpose(const Tensor& x, int first, int second);
/// The elements along the dimensions in reverse order; an empty list names none.
[[nodiscard]] Tensor flip(const Tensor& x, const Dims& dims);

/// x, times[d] times one behind the other along dimension d. `times` has a number for each dimension of x, or more: the
/// first ones are then of new dimensions.
[[nodiscard]] Tensor repeat(const Tensor& x, const std::vector<std::int64_t>& times);

/// Moves elements along a dimension by `shift` places, back if negative. Those that leave one end enter at the other.
[[nodiscard]] Tensor roll(const Tensor& x, std::int64_t shift, int dim);

/// The values that pad() puts beside a dimension's elements.
enum class PadMode {
  kConstant,   ///< PadOptions::value
  kReflect,    ///< the elements mirrored, without the outermost one: c b | a b c
  kReplicate,  ///< the outermost element: a a | a b c
  kCircular,   ///< the elements from the other end: b c | a b c
};
struct PadOptions {
  PadMode mode = PadMode::kConstant;
  double value = 0;
};
/// x with `before` and `after` further places along a dimension. Throws ShapeError for negative numbers (slice() crops)
/// and for a dimension that is too short for the mode: reflect needs more elements than are added on either side,
/// circular as many, replicate one.
[[nodiscard]] Tensor pad(const Tensor& x, int dim, std::int64_t before, std::int64_t after,
                         const PadOptions& options = {});

/// The last two dimensions' lower and upper triangle; 0 beyond the diagonal, which lies `diagonal` columns to the right
/// of the main one. Throws ShapeError for fewer than two dimensions.
[[nodiscard]] Tensor tril(const Tensor& x, std::int64_t diagonal = 0);
[[nodiscard]] Tensor triu(const Tensor& x, std::int64_t diagonal = 0);

/// The tensors one behind the other along a dimension; their other extents are the same. Floating dtypes are promoted;
/// others differ from none. Throws UsageError where they do.
[[nodiscard]] Tensor cat(const std::vector<Tensor>& tensors, int dim = 0);
/// Tensors of one shape along a new dimension.
[[nodiscard]] Tensor stack(const std::vector<Tensor>& tensors, int dim = 0);

/// x[begin : end : step] along a dimension, by Python's rules: negative places count from the end, and those behind it
/// are the end. step >= 1.
[[nodiscard]] Tensor slice(const Tensor& x, int dim, std::int64_t begin, std::int64_t end, std::int64_t step = 1);
/// x[at] along a dimension, which is gone in the result. Throws ShapeError for a place that is not there.
[[nodiscard]] Tensor select(const Tensor& x, int dim, std::int64_t at);
/// Slices of these extents along a dimension, which add up to its own.
[[nodiscard]] std::vector<Tensor> split(const Tensor& x, const std::vector<std::int64_t>& extents, int dim = 0);
/// Slices of `extent` along a dimension; the last one may be shorter.
[[nodiscard]] std::vector<Tensor> split(const Tensor& x, std::int64_t extent, int dim = 0);
/// At most `chunks` slices of equal extent along a dimension; the last one may be shorter.
[[nodiscard]] std::vector<Tensor> chunk(const Tensor& x, std::int64_t chunks, int dim = 0);

}  // namespace lockstep::ops
