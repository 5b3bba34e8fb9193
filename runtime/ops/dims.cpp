// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/dims.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/error.h"

namespace lockstep::ops {

int dim_of(std::string_view operation, int dim, int rank) {
  const int dims = std::max(rank, 1);
  if (dim < -dims || dim >= dims) {
    throw ShapeError(fmt::format("{}: dimension {} of a tensor of rank {}, which takes {} to {}", operation, dim, rank,
                                 -dims, dims - 1));
  }
  return dim < 0 ? dim + dims : dim;
}

int dim_of(std::string_view operation, int dim, const Tensor& x) {
  require_defined(x, operation, "the input");
  return dim_of(operation, dim, x.shape().rank());
}

DimSet dims_of(std::string_view operation, const Dims& dims, const Tensor& x) {
  require_defined(x, operation, "the input");
  return dims_of(operation, dims, x.shape().rank());
}

DimSet dims_of(std::string_view operation, const Dims& dims, int rank) {
  DimSet set{};
  if (dims.list().empty()) std::fill_n(set.begin(), rank, true);
  for (const int dim : dims.list()) {
    bool& marked = set[static_cast<std::size_t>(dim_of(operation, dim, rank))];
    if (marked) throw ShapeError(fmt::format("{}: dimension {} is named twice", operation, dim));
    marked = true;
  }
  return set;
}

Shape reduced_shape(const Shape& shape, const DimSet& dims, bool keepdim) {
  std::vector<std::int64_t> extents;
  for (int d = 0; d < shape.rank(); ++d) {
    const bool reduced = dims[static_cast<std::size_t>(d)];
    if (!reduced || keepdim) extents.push_back(reduced ? 1 : shape[d]);
  }
  return Shape(extents);
}

Range range_in(std::int64_t extent, std::int64_t begin, std::int64_t end) {
  const auto place = [extent](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + extent : at, 0, extent);
  };
  return {place(begin), std::max(place(begin), place(end))};
}

Around::Around(const Shape& shape, int dim) {
  for (int d = 0; d < shape.rank(); ++d) (d < dim ? outer : d == dim ? n : inner) *= shape[d];
}

}  // namespace lockstep::ops
