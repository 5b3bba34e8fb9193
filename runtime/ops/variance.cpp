// SPDX-License-Identifier: Apache-2.0
#include "amp/autocast/autocast.h"
#include "runtime/autograd/cast.h"
#include "runtime/autograd/node.h"
#include "runtime/kernels/backend.h"
#include "runtime/ops/compare.h"
#include "runtime/ops/elementwise.h"
#include "runtime/ops/reduce.h"
#include "runtime/ops/shape.h"
#include "runtime/ops/together.h"
#include "runtime/ops/without_autocast.h"

namespace lockstep::ops {

Tensor var(const Tensor& input, const Dims& dims, const VarianceOptions& options) {
  const DimSet set = dims_of("var", dims, input.shape().rank());
  const Tensor x = together(amp::autocast(amp::Op::kVar, input), set);
  const double divisor = static_cast<double>(x.size(1)) - options.correction;
  const Tensor y = Tensor::empty({x.size(0), x.size(2)}, x.dtype(), x.device());
  kernels::backend(x.device()).variance_dim(x, divisor, y);
  autograd::record(y, name_of(amp::Op::kVar), {x},
                   {.recorded = [x = autograd::SavedTensor::in_graph(x), divisor](
                                    const Tensor& dy, const autograd::BackwardContext& context) {
                     // The distances from the mean are small numbers where the numbers themselves are large.
                     const Tensor& at = context.saved(x);
                     const Tensor wide = is_reduced(at.dtype()) ? autograd::cast(at, DType::kFloat32) : at;
                     const Tensor centred = add(wide, spread(scale(mean(wide, 1), -1), wide.shape()));
                     const Tensor factor = scale(autograd::cast(dy, wide.dtype()), 2 / divisor);
                     return std::vector<Tensor>{mul(spread(factor, wide.shape()), centred)};
                   }});
  return reshape(y, reduced_shape(input.shape(), set, options.keepdim));
}

Tensor std(const Tensor& input, const Dims& dims, const VarianceOptions& options) {
  const Tensor variance = var(amp::autocast(amp::Op::kStd, input), dims, options);
  const WithoutAutocast as_it_is;
  const Tensor none = eq(variance.detach(), 0);
  return where(none, 0, sqrt(where(none, 1, variance)));
}

}  // namespace lockstep::ops
