// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/shape.h"

#include "amp/autocast/autocast.h"
#include "runtime/autograd/cast.h"
#include "runtime/autograd/node.h"

namespace lockstep::ops {

Tensor reshape(const Tensor& input, const Shape& shape) {
  const Tensor x = amp::autocast(amp::Op::kReshape, input);
  const Tensor y = x.reshaped(shape);
  autograd::record(y, "reshape", {x},
                   {.recorded = [from = x.shape()](const Tensor& dy, const autograd::BackwardContext&) {
                     return std::vector<Tensor>{reshape(dy, from)};
                   }});
  return y;
}

Tensor flatten(const Tensor& x) {
  std::int64_t rest = 1;
  for (int d = 1; d < x.shape().rank(); ++d) rest *= x.size(d);
  return reshape(x, {x.size(0), rest});
}

Tensor cast(const Tensor& x, DType dtype) { return autograd::cast(x, dtype); }

Tensor widened(const Tensor& x) { return is_reduced(x.dtype()) ? cast(x, DType::kFloat32) : x; }

}  // namespace lockstep::ops
