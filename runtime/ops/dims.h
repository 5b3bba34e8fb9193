// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "runtime/tensor/tensor.h"

namespace lockstep::ops {

/// Dimensions that an operation works along: one, or a list. Negative ones count from the end.
class Dims {
 public:
  Dims(int dim) : dims_{dim} {}                            // NOLINT(google-explicit-constructor)
  Dims(std::initializer_list<int> dims) : dims_(dims) {}   // NOLINT(google-explicit-constructor)
  Dims(std::vector<int> dims) : dims_(std::move(dims)) {}  // NOLINT(google-explicit-constructor)

  const std::vector<int>& list() const { return dims_; }

 private:
  std::vector<int> dims_;
};

/// A set of dimensions of a shape.
using DimSet = std::array<bool, Shape::kMaxRank>;

/// `dim` of a tensor of this rank, counted from the front. A scalar has the one dimension 0. Throws ShapeError, which
/// names the operation, for one that is not there.
int dim_of(std::string_view operation, int dim, int rank);
/// dim_of() for the rank of x. Throws UsageError, which names the operation, where x is undefined.
int dim_of(std::string_view operation, int dim, const Tensor& x);
/// The set that a list names; an empty list names all of them. Throws ShapeError for one that is not there or named
/// twice.
DimSet dims_of(std::string_view operation, const Dims& dims, int rank);
DimSet dims_of(std::string_view operation, const Dims& dims, const Tensor& x);
/// The shape with the marked extents 1, or without them.
[[nodiscard]] Shape reduced_shape(const Shape& shape, const DimSet& dims, bool keepdim);

/// The places from begin on, up to end.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
/// begin:end of Python in a dimension of this extent: negative places count from the end, those behind it are the end.
Range range_in(std::int64_t extent, std::int64_t begin, std::int64_t end);

/// A shape as [outer, n, inner] around one dimension, which a scalar has too.
struct Around {
  std::int64_t outer = 1, n = 1, inner = 1;

  Around(const Shape& shape, int dim);
  Shape shape() const { return {outer, n, inner}; }
  Shape with(std::int64_t extent) const { return {outer, extent, inner}; }
};

}  // namespace lockstep::ops
