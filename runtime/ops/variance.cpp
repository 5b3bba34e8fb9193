// SPDX-License-Identifier: Apache-2.0
#include "amp/autocast/autocast.h"
#include "runtime/autograd/node.h"
#include "runtime/kernels/dim_reductions.h"
#include "runtime/ops/compare.h"
#include "runtime/ops/elementwise.h"
#include "runtime/ops/reduce.h"
#include "runtime/ops/shape.h"
#include "runtime/ops/together.h"
#include "runtime/ops/without_autocast.h"

namespace lockstep::ops {

namespace {

/// The variance over the middle of [outer, n, inner]: [outer, inner] in `dtype`.
Tensor variance(const Tensor& x, double correction, DType dtype) {
  const double divisor = static_cast<double>(x.size(1)) - correction;
  const Tensor y = Tensor::empty({x.size(0), x.size(2)}, dtype, x.device());
  kernels::DimReductions::on(x.device()).variance_dim(x, divisor, y);
  autograd::record(y, name_of(amp::Op::kVar), {x},
                   {.recorded = [x = autograd::SavedTensor::in_graph(x), divisor](
                                    const Tensor& dy, const autograd::BackwardContext& context) {
                     // The distances from the mean are small numbers where the numbers themselves are large.
                     const Tensor wide = widened(context.saved(x));
                     const Tensor centred = add(wide, spread(scale(mean(wide, 1), -1), wide.shape()));
                     const Tensor factor = scale(cast(dy, wide.dtype()), 2 / divisor);
                     return std::vector<Tensor>{mul(spread(factor, wide.shape()), centred)};
                   }});
  return y;
}

}  // namespace

Tensor var(const Tensor& input, const Dims& dims, const VarianceOptions& options) {
  const DimSet set = dims_of("var", dims, input);
  const Tensor x = together(amp::autocast(amp::Op::kVar, input), set);
  return reshape(variance(x, options.correction, x.dtype()), reduced_shape(input.shape(), set, options.keepdim));
}

Tensor std(const Tensor& input, const Dims& dims, const VarianceOptions& options) {
  const DimSet set = dims_of("std", dims, input);
  const Tensor x = together(amp::autocast(amp::Op::kStd, input), set);
  const WithoutAutocast as_it_is;
  // A square may leave the range of the 16-bit dtype in which its root lies.
  const Tensor square = variance(x, options.correction, wide_of(x.dtype()));
  const Tensor none = eq(square.detach(), 0);
  const Tensor root = where(none, 0, sqrt(where(none, 1, square)));
  return reshape(cast(root, x.dtype()), reduced_shape(input.shape(), set, options.keepdim));
}

}  // namespace lockstep::ops
