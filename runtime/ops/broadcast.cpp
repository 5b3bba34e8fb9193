// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/broadcast.h"

#include "amp/autocast/autocast.h"
#include "runtime/autograd/node.h"
#include "runtime/base/error.h"
#include "runtime/kernels/elementwise.h"
#include "runtime/kernels/geometry/broadcast.h"
#include "runtime/kernels/movement.h"
#include "runtime/ops/broadcast_sum.h"

namespace lockstep::ops {

namespace {

/// For integers and bool, which the kernel of floating dtypes refuses.
void expand_elements(const Tensor& x, const Tensor& y) {
  if (kernels::broadcast_shape("expand", x.shape(), y.shape()) != y.shape()) {
    throw ShapeError("expand of " + describe(x) + " to " + y.shape().str());
  }
  kernels::Walk from = kernels::dense_walk(x.shape());
  const int added = y.shape().rank() - x.shape().rank();
  for (int d = y.shape().rank() - 1; d >= 0; --d) {
    const bool repeated = d < added || x.size(d - added) != y.size(d);
    from.strides[static_cast<std::size_t>(d)] = repeated ? 0 : from.strides[static_cast<std::size_t>(d - added)];
  }
  kernels::Movement::on(x.device()).copy_strided(x, from, y.shape(), y, kernels::dense_walk(y.shape()));
}

}  // namespace

Tensor expand(const Tensor& input, const Shape& shape) {
  require_defined(input, "expand", "the input");
  if (input.shape() == shape) return input;
  const Tensor x = amp::autocast(amp::Op::kExpand, input);
  const Tensor y = Tensor::empty(shape, x.dtype(), x.device());
  if (is_floating(x.dtype())) {
    kernels::Elementwise::on(x.device()).expand(x, y);
  } else {
    expand_elements(x, y);
  }
  autograd::record(y, "expand", {x},
                   {.recorded = [from = x.shape()](const Tensor& dy, const autograd::BackwardContext&) {
                     return std::vector<Tensor>{sum_to(dy, from)};
                   }});
  return y;
}

Tensor sum_to(const Tensor& input, const Shape& shape) {
  require_defined(input, "sum_to", "the input");
  if (input.shape() == shape) return input;
  const Tensor x = amp::autocast(amp::Op::kSumTo, input);
  const Tensor y = Tensor::empty(shape, x.dtype(), x.device());
  sum_broadcast(x, false, y);
  autograd::record(y, "sum_to", {x},
                   {.recorded = [from = x.shape()](const Tensor& dy, const autograd::BackwardContext&) {
                     return std::vector<Tensor>{expand(dy, from)};
                   }});
  return y;
}

Tensor sum_of_rows(const Tensor& x) { return sum_to(x, x.shape().with(-1, 1)); }

}  // namespace lockstep::ops
