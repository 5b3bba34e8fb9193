// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/shape.h"

#include "amp/autocast/autocast.h"
#include "runtime/autograd/cast.h"
#include "runtime/ops/dims.h"

namespace lockstep::ops {

Tensor reshape(const Tensor& input, const Shape& shape) {
  return amp::autocast(amp::Op::kReshape, input).reshaped(shape);
}

Tensor flatten(const Tensor& x) {
  require_defined(x, "flatten", "the input");
  std::int64_t rest = 1;
  for (int d = 1; d < x.shape().rank(); ++d) rest *= x.size(d);
  return reshape(x, {x.size(0), rest});
}

Tensor unsqueeze(const Tensor& x, int dim) {
  require_defined(x, "unsqueeze", "the input");
  const int at = dim_of("unsqueeze", dim, x.shape().rank() + 1);
  std::vector<std::int64_t> extents(x.shape().extents().begin(), x.shape().extents().end());
  extents.insert(extents.begin() + at, 1);
  return reshape(x, Shape(extents));
}

Tensor squeeze(const Tensor& x) {
  require_defined(x, "squeeze", "the input");
  std::vector<std::int64_t> extents;
  for (const std::int64_t extent : x.shape().extents()) {
    if (extent != 1) extents.push_back(extent);
  }
  return reshape(x, Shape(extents));
}

Tensor squeeze(const Tensor& x, int dim) {
  const int at = dim_of("squeeze", dim, x);
  if (x.shape().rank() == 0 || x.size(at) != 1) return x;
  DimSet gone{};
  gone[static_cast<std::size_t>(at)] = true;
  return reshape(x, reduced_shape(x.shape(), gone, false));
}

Tensor cast(const Tensor& x, DType dtype) { return autograd::cast(x, dtype); }

Tensor widened(const Tensor& x) { return x.defined() ? cast(x, wide_of(x.dtype())) : x; }

}  // namespace lockstep::ops
