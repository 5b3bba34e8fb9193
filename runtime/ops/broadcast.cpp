// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/broadcast.h"

#include "amp/autocast/autocast.h"
#include "runtime/autograd/node.h"
#include "runtime/kernels/elementwise.h"
#include "runtime/ops/broadcast_sum.h"

namespace lockstep::ops {

Tensor expand(const Tensor& input, const Shape& shape) {
  require_defined(input, "expand", "the input");
  if (input.shape() == shape) return input;
  const Tensor x = amp::autocast(amp::Op::kExpand, input);
  const Tensor y = Tensor::empty(shape, x.dtype(), x.device());
  kernels::Elementwise::on(x.device()).expand(x, y);
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
