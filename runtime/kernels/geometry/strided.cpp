// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/geometry/strided.h"

#include <algorithm>

namespace lockstep::kernels {

Walk dense_walk(const Shape& shape) {
  Walk walk;
  std::int64_t stride = 1;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    walk.strides[static_cast<std::size_t>(d)] = stride;
    stride *= shape[d];
  }
  return walk;
}

int CopyPlan::transposed_with(std::int64_t least) const {
  if (rank < 2 || innermost().to != 1 || innermost().extent < least) return -1;
  for (int d = 0; d + 1 < rank; ++d) {
    const CopyDim& dim = dims[static_cast<std::size_t>(d)];
    if (dim.from == 1 && dim.extent >= least) return d;
  }
  return -1;
}

CopyDim CopyPlan::take(int d) {
  const CopyDim taken = dims[static_cast<std::size_t>(d)];
  std::copy(dims.begin() + d + 1, dims.begin() + rank, dims.begin() + d);
  --rank;
  return taken;
}

CopyPlan plan_copy(const Walk& from, const Shape& extents, const Walk& to) {
  CopyPlan plan{.elements = extents.numel(), .from = from.offset, .to = to.offset};
  for (int d = 0; d < extents.rank(); ++d) {
    const auto at = static_cast<std::size_t>(d);
    if (extents[d] != 1)
      plan.dims[static_cast<std::size_t>(plan.rank++)] = {extents[d], from.strides[at], to.strides[at]};
  }
  if (plan.elements == 0) return plan;
  std::stable_sort(plan.dims.begin(), plan.dims.begin() + plan.rank,
                   [](const CopyDim& a, const CopyDim& b) { return a.to > b.to; });
  int merged = 0;
  for (int d = 1; d < plan.rank; ++d) {
    CopyDim& outer = plan.dims[static_cast<std::size_t>(merged)];
    const CopyDim& inner = plan.dims[static_cast<std::size_t>(d)];
    if (outer.from == inner.from * inner.extent && outer.to == inner.to * inner.extent) {
      outer = {outer.extent * inner.extent, inner.from, inner.to};
    } else {
      plan.dims[static_cast<std::size_t>(++merged)] = inner;
    }
  }
  if (plan.rank > 0) plan.rank = merged + 1;
  return plan;
}

}  // namespace lockstep::kernels
