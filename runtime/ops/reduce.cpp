// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/reduce.h"

#include "amp/autocast/autocast.h"
#include "runtime/autograd/node.h"
#include "runtime/kernels/backend.h"
#include "runtime/ops/elementwise.h"

namespace lockstep::ops {

namespace {

Tensor expand(const Tensor& scalar, const Shape& shape);

Tensor reduce(std::string_view name, const Tensor& x, double factor) {
  const Tensor y = Tensor::empty({}, x.dtype(), x.device());
  kernels::backend(x.device()).sum(x, factor, y);
  autograd::record(y, name, {x},
                   {.recorded = [factor, shape = x.shape()](const Tensor& dy, const autograd::BackwardContext&) {
                     return std::vector<Tensor>{expand(scale(dy, factor), shape)};
                   }});
  return y;
}

/// A tensor full of the scalar: the gradient of a sum, whose own gradient is a sum.
Tensor expand(const Tensor& scalar, const Shape& shape) {
  const Tensor out = Tensor::zeros(shape, scalar.dtype(), scalar.device());
  const kernels::Backend& backend = kernels::backend(scalar.device());
  backend.add(out.reshaped({shape.numel(), 1}), scalar.reshaped({1}), out.reshaped({shape.numel(), 1}));
  autograd::record(out, "expand", {scalar}, {.recorded = [](const Tensor& dy, const autograd::BackwardContext&) {
                     return std::vector<Tensor>{reduce("sum", dy, 1.0)};
                   }});
  return out;
}

}  // namespace

Tensor sum(const Tensor& x) { return reduce("sum", amp::autocast(amp::Op::kSum, x), 1.0); }

Tensor mean(const Tensor& x) {
  const double count = static_cast<double>(x.numel());
  return reduce("mean", amp::autocast(amp::Op::kMean, x), count > 0 ? 1.0 / count : 0.0);
}

}  // namespace lockstep::ops
