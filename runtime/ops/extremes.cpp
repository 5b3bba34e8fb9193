// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "amp/autocast/autocast.h"
#include "runtime/autograd/node.h"
#include "runtime/base/error.h"
#include "runtime/kernels/dim_reductions.h"
#include "runtime/ops/elementwise.h"
#include "runtime/ops/indexing.h"
#include "runtime/ops/reduce.h"
#include "runtime/ops/shape.h"
#include "runtime/ops/together.h"

namespace lockstep::ops {

using autograd::BackwardContext;
using autograd::SavedTensor;
using kernels::Extreme;

namespace {

void require_elements(amp::Op op, const Tensor& x, const DimSet& dims) {
  for (int d = 0; d < x.shape().rank(); ++d) {
    if (dims[static_cast<std::size_t>(d)] && x.size(d) == 0) {
      throw ShapeError(
          fmt::format("{} of {} over dimension {}: no elements have an extreme one", name_of(op), describe(x), d));
    }
  }
}

/// One dimension of x as a set, and the shape of what is left.
struct OneDim {
  int dim;
  DimSet set{};

  OneDim(amp::Op op, const Tensor& x, int dim_in) : dim(dim_of(name_of(op), dim_in, x)) {
    if (x.shape().rank() > 0) set[static_cast<std::size_t>(dim)] = true;
    require_elements(op, x, set);
  }
};

Extremes extremes(amp::Op op, Extreme which, const Tensor& input, int dim_in, bool keepdim) {
  const Tensor x = amp::autocast(op, input);
  const OneDim one(op, x, dim_in);
  const Around around(x.shape(), one.dim);
  const Tensor lines = reshape(x, around.shape());
  const Tensor values = Tensor::empty({around.outer, around.inner}, x.dtype(), x.device());
  const Tensor indices = Tensor::empty(values.shape(), DType::kInt64, x.device());
  kernels::DimReductions::on(x.device()).extreme_dim(lines, which, values, indices);
  autograd::record(
      values, name_of(op), {lines},
      {.recorded = [indices = SavedTensor(indices), around](const Tensor& dy, const BackwardContext& context) {
        const Tensor at = context.saved(indices).detach(around.with(1));
        return std::vector<Tensor>{scatter_add(reshape(dy, around.with(1)), 1, at, around.n)};
      }});
  const Shape shape = reduced_shape(x.shape(), one.set, keepdim);
  return {reshape(values, shape), indices.detach(shape)};
}

Tensor extreme_values(amp::Op op, Extreme which, const Tensor& input, const DimSet& dims, bool keepdim) {
  const Tensor x = amp::autocast(op, input);
  require_elements(op, x, dims);
  const Tensor lines = together(x, dims);
  const Tensor values = Tensor::empty({lines.size(0), lines.size(2)}, x.dtype(), x.device());
  kernels::DimReductions::on(x.device()).extreme_dim(lines, which, values, {});
  autograd::record(
      values, name_of(op), {lines},
      {.recorded = [x = SavedTensor(lines), y = SavedTensor(values)](const Tensor& dy, const BackwardContext& context) {
        // The shares are constants: the set of extreme elements does not change with small changes of x.
        const Tensor& at = context.saved(x);
        const Tensor shares = Tensor::empty(at.shape(), at.dtype(), at.device());
        kernels::DimReductions::on(at.device()).extreme_shares(at, context.saved(y), shares);
        return std::vector<Tensor>{mul(spread(dy, at.shape()), shares)};
      }});
  return reshape(values, reduced_shape(x.shape(), dims, keepdim));
}

Tensor places(amp::Op op, Extreme which, const Tensor& input, int dim_in, bool keepdim) {
  require_defined(input, name_of(op), "the input");
  const Tensor x = amp::autocast(op, input.detach());
  const OneDim one(op, x, dim_in);
  const Around around(x.shape(), one.dim);
  const Tensor indices = Tensor::empty({around.outer, around.inner}, DType::kInt64, x.device());
  kernels::DimReductions::on(x.device()).extreme_dim(x.detach(around.shape()), which, {}, indices);
  autograd::record(indices, name_of(op), {x}, {});
  return indices.detach(reduced_shape(x.shape(), one.set, keepdim));
}

DimSet all_of(amp::Op op, const Tensor& x) { return dims_of(name_of(op), {}, x); }
Tensor line_of(amp::Op op, const Tensor& x) {
  require_defined(x, name_of(op), "the input");
  return x.detach({x.numel()});
}

}  // namespace

Extremes max(const Tensor& x, int dim, bool keepdim) {
  return extremes(amp::Op::kMax, Extreme::kLargest, x, dim, keepdim);
}
Extremes min(const Tensor& x, int dim, bool keepdim) {
  return extremes(amp::Op::kMin, Extreme::kSmallest, x, dim, keepdim);
}

Tensor amax(const Tensor& x, const Dims& dims, bool keepdim) {
  return extreme_values(amp::Op::kAmax, Extreme::kLargest, x, dims_of("amax", dims, x), keepdim);
}
Tensor amin(const Tensor& x, const Dims& dims, bool keepdim) {
  return extreme_values(amp::Op::kAmin, Extreme::kSmallest, x, dims_of("amin", dims, x), keepdim);
}

Tensor max(const Tensor& x) {
  return extreme_values(amp::Op::kMax, Extreme::kLargest, x, all_of(amp::Op::kMax, x), false);
}
Tensor min(const Tensor& x) {
  return extreme_values(amp::Op::kMin, Extreme::kSmallest, x, all_of(amp::Op::kMin, x), false);
}

Tensor argmax(const Tensor& x, int dim, bool keepdim) {
  return places(amp::Op::kArgmax, Extreme::kLargest, x, dim, keepdim);
}
Tensor argmin(const Tensor& x, int dim, bool keepdim) {
  return places(amp::Op::kArgmin, Extreme::kSmallest, x, dim, keepdim);
}
Tensor argmax(const Tensor& x) { return argmax(line_of(amp::Op::kArgmax, x), 0); }
Tensor argmin(const Tensor& x) { return argmin(line_of(amp::Op::kArgmin, x), 0); }

}  // namespace lockstep::ops
