// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/together.h"

#include "runtime/ops/broadcast.h"
#include "runtime/ops/movement.h"
#include "runtime/ops/shape.h"

namespace lockstep::ops {

Tensor together(const Tensor& x, const DimSet& dims) {
  const Shape& shape = x.shape();
  const auto marked = [&](int d) { return dims[static_cast<std::size_t>(d)]; };
  int first = 0;
  while (first < shape.rank() && !marked(first)) ++first;
  int behind = first;
  while (behind < shape.rank() && marked(behind)) ++behind;
  bool neighbours = true;
  for (int d = behind; d < shape.rank(); ++d) neighbours = neighbours && !marked(d);
  std::int64_t outer = 1, n = 1, inner = 1;
  for (int d = 0; d < shape.rank(); ++d) {
    (marked(d) ? n : neighbours && d >= behind ? inner : outer) *= shape[d];
  }
  if (neighbours) return reshape(x, {outer, n, inner});
  std::vector<int> order;
  for (const bool last : {false, true}) {
    for (int d = 0; d < shape.rank(); ++d) {
      if (marked(d) == last) order.push_back(d);
    }
  }
  return reshape(permute(x, order), {outer, n, 1});
}

Tensor spread(const Tensor& reduced, const Shape& shape) {
  return expand(reshape(reduced, {shape[0], 1, shape[2]}), shape);
}

}  // namespace lockstep::ops
