// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/reduce.h"

#include "amp/autocast/autocast.h"
#include "runtime/autograd/cast.h"
#include "runtime/autograd/node.h"
#include "runtime/base/error.h"
#include "runtime/ops/broadcast.h"
#include "runtime/ops/dim_sums.h"
#include "runtime/ops/elementwise.h"
#include "runtime/ops/integers.h"
#include "runtime/ops/shape.h"

namespace lockstep::ops {

using autograd::BackwardContext;
using kernels::Term;

namespace {

/// factor * the sum over the marked dimensions, in `dtype`.
Tensor sum_as(amp::Op op, const Tensor& input, const DimSet& dims, bool keepdim, double factor, DType dtype) {
  // The kernel reads narrower floating dtypes exactly: a cast to a wider one would be a copy for nothing.
  const bool reads = is_floating(input.dtype()) && promote(input.dtype(), dtype) == dtype;
  const Tensor x = reads ? input : autograd::cast(input, dtype);
  const Tensor y = sum_over(x, dims, Term::kValue, factor, dtype).detach(reduced_shape(x.shape(), dims, keepdim));
  autograd::record(
      y, name_of(op), {x}, autograd::OnLosses::kAdds,
      {.recorded = [factor, from = x.dtype(), shape = x.shape(), kept = reduced_shape(x.shape(), dims, true)](
                       const Tensor& dy, const BackwardContext&) {
        const Tensor dsum = factor == 1.0 ? dy : scale(dy, factor);
        return std::vector<Tensor>{expand(reshape(autograd::cast(dsum, from), kept), shape)};
      }});
  return y;
}

/// The number of elements that each result sums.
std::int64_t count_of(const Shape& shape, const DimSet& dims) {
  std::int64_t count = 1;
  for (int d = 0; d < shape.rank(); ++d) count *= dims[static_cast<std::size_t>(d)] ? shape[d] : 1;
  return count;
}

DType dtype_of_mean(const Tensor& x) {
  if (is_floating(x.dtype())) return amp::dtype_for(amp::Op::kMean, x);
  throw UsageError("mean of " + describe(x) + ": it needs a floating dtype", "cast() it to one.");
}

}  // namespace

Tensor sum(const Tensor& x, const Dims& dims, const SumOptions& options) {
  if (counts_in_integers(amp::Op::kSum, x, options.dtype)) {
    return in_integers(x, options.dtype, [&](const Tensor& wide) {
      return sum(wide, dims, {.keepdim = options.keepdim, .dtype = DType::kFloat64});
    });
  }
  const DType dtype = options.dtype ? *options.dtype : amp::dtype_for(amp::Op::kSum, x);
  return sum_as(amp::Op::kSum, x, dims_of("sum", dims, x), options.keepdim, 1.0, dtype);
}

Tensor sum(const Tensor& x) { return sum(x, {}); }

Tensor mean(const Tensor& x, const Dims& dims, bool keepdim) {
  const DimSet set = dims_of("mean", dims, x);
  const double factor = 1.0 / static_cast<double>(count_of(x.shape(), set));
  return sum_as(amp::Op::kMean, x, set, keepdim, factor, dtype_of_mean(x));
}

Tensor mean(const Tensor& x) {
  require_defined(x, "mean", "the input");
  const double factor = x.numel() > 0 ? 1.0 / static_cast<double>(x.numel()) : 0.0;
  return sum_as(amp::Op::kMean, x, dims_of("mean", {}, x), false, factor, dtype_of_mean(x));
}

}  // namespace lockstep::ops
