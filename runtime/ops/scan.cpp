// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/scan.h"

#include "amp/autocast/autocast.h"
#include "runtime/autograd/cast.h"
#include "runtime/autograd/node.h"
#include "runtime/base/error.h"
#include "runtime/kernels/assign.h"
#include "runtime/kernels/movement.h"
#include "runtime/kernels/scans.h"
#include "runtime/ops/dims.h"
#include "runtime/ops/elementwise.h"
#include "runtime/ops/factories.h"
#include "runtime/ops/integers.h"
#include "runtime/ops/movement.h"
#include "runtime/ops/result.h"
#include "runtime/ops/shape.h"

namespace lockstep::ops {

using autograd::BackwardContext;
using autograd::SavedTensor;

namespace {

/// x in the dtype of the result.
Tensor lines_of(amp::Op op, const Tensor& x, std::optional<DType> dtype) {
  return dtype ? autograd::cast(x, *dtype) : amp::autocast(op, x);
}

// The functions below take [outer, n, inner] and run along the middle.

Tensor running_sum(const Tensor& x, bool reverse) {
  const Tensor y = empty_like(x);
  kernels::Scans::on(x.device()).scan({}, x, reverse, y);
  autograd::record(y, name_of(amp::Op::kCumsum), {x}, {.recorded = [reverse](const Tensor& dy, const BackwardContext&) {
                     return std::vector<Tensor>{running_sum(dy, !reverse)};
                   }});
  return y;
}

/// For each element the one before it, or behind it where `reverse`; `edge` where there is none.
Tensor before(const Tensor& x, bool reverse, double edge) {
  const std::int64_t n = x.size(1);
  if (n == 0) return x;
  const Tensor end = full(x.shape().with(1, 1), edge, {x.dtype(), x.device()});
  return reverse ? cat({slice(x, 1, 1, n), end}, 1) : cat({end, slice(x, 1, 0, n - 1)}, 1);
}

Tensor recur(const Tensor& a, const Tensor& b, bool reverse) {
  const Tensor y = empty_like(b);
  kernels::Scans::on(b.device()).scan(a, b, reverse, y);
  autograd::record(
      y, name_of(amp::Op::kRecurrence), {a, b},
      {.recorded = [a = SavedTensor::in_graph(a), y = SavedTensor(y), reverse](const Tensor& dy,
                                                                               const BackwardContext& context) {
        // The whole gradient of y_k: g_k = dy_k + a_(k+1) g_(k+1).
        const Tensor g = recur(before(context.saved(a), !reverse, 0), dy, !reverse);
        return std::vector<Tensor>{context.needs(0) ? mul(g, before(context.result(y), reverse, 0)) : Tensor(), g};
      }});
  return y;
}

Tensor running_product(const Tensor& x, bool reverse) {
  const Tensor y = empty_like(x);
  kernels::Scans::on(x.device()).scan(x, {}, reverse, y);
  autograd::record(y, name_of(amp::Op::kCumprod), {x},
                   {.recorded = [x = SavedTensor::in_graph(x), y = SavedTensor(y), reverse](
                                    const Tensor& dy, const BackwardContext& context) {
                     const Tensor g = recur(before(context.saved(x), !reverse, 0), dy, !reverse);
                     return std::vector<Tensor>{mul(g, before(context.result(y), reverse, 1))};
                   }});
  return y;
}

/// The product over the middle, [outer, inner].
Tensor whole_product(const Tensor& x) {
  const Tensor y = Tensor::empty({x.size(0), x.size(2)}, x.dtype(), x.device());
  const kernels::Scans& scans = kernels::Scans::on(x.device());
  const kernels::Movement& movement = kernels::Movement::on(x.device());
  if (x.size(1) == 0) {
    kernels::fill(y, 1);
  } else {
    const Tensor running = empty_like(x);
    scans.scan(x, {}, false, running);
    const Shape row = x.shape().with(1, 1);
    kernels::Walk last = kernels::dense_walk(x.shape());
    last.offset = (x.size(1) - 1) * x.size(2);
    movement.copy_strided(running, last, row, y, kernels::dense_walk(row));
  }
  autograd::record(y, name_of(amp::Op::kProd), {x},
                   {.recorded = [x = SavedTensor::in_graph(x)](const Tensor& dy, const BackwardContext& context) {
                     // The product of all the others: of those before it and of those behind it.
                     const Tensor& at = context.saved(x);
                     const Tensor left = before(running_product(at, false), false, 1);
                     const Tensor right = before(running_product(at, true), true, 1);
                     return std::vector<Tensor>{mul(reshape(dy, {at.size(0), 1, at.size(2)}), mul(left, right))};
                   }});
  return y;
}

}  // namespace

Tensor cumsum(const Tensor& input, int dim, std::optional<DType> dtype) {
  if (counts_in_integers(amp::Op::kCumsum, input, dtype)) {
    return in_integers(input, dtype, [&](const Tensor& wide) { return cumsum(wide, dim, DType::kFloat64); });
  }
  const Tensor x = lines_of(amp::Op::kCumsum, input, dtype);
  const Around around(x.shape(), dim_of("cumsum", dim, x));
  return reshape(running_sum(reshape(x, around.shape()), false), x.shape());
}

Tensor cumprod(const Tensor& input, int dim, std::optional<DType> dtype) {
  if (counts_in_integers(amp::Op::kCumprod, input, dtype)) {
    return in_integers(input, dtype, [&](const Tensor& wide) { return cumprod(wide, dim, DType::kFloat64); });
  }
  const Tensor x = lines_of(amp::Op::kCumprod, input, dtype);
  const Around around(x.shape(), dim_of("cumprod", dim, x));
  return reshape(running_product(reshape(x, around.shape()), false), x.shape());
}

Tensor prod(const Tensor& input, int dim_in, const ProductOptions& options) {
  if (counts_in_integers(amp::Op::kProd, input, options.dtype)) {
    return in_integers(input, options.dtype, [&](const Tensor& wide) {
      return prod(wide, dim_in, {.keepdim = options.keepdim, .dtype = DType::kFloat64});
    });
  }
  const Tensor x = lines_of(amp::Op::kProd, input, options.dtype);
  const int dim = dim_of("prod", dim_in, x);
  DimSet set{};
  if (x.shape().rank() > 0) set[static_cast<std::size_t>(dim)] = true;
  return reshape(whole_product(reshape(x, Around(x.shape(), dim).shape())),
                 reduced_shape(x.shape(), set, options.keepdim));
}

Tensor prod(const Tensor& x, std::optional<DType> dtype) {
  require_defined(x, "prod", "the input");
  return prod(reshape(x, {x.numel()}), 0, {.dtype = dtype});
}

Tensor recurrence(const Tensor& first, const Tensor& second, int dim_in, bool reverse) {
  const Tensor a = amp::autocast(amp::Op::kRecurrence, first, "a");
  const Tensor b = amp::autocast(amp::Op::kRecurrence, second, "b");
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) {
    throw ShapeError("recurrence of " + describe(a) + " and " + describe(b));
  }
  const Around around(b.shape(), dim_of("recurrence", dim_in, b));
  return reshape(recur(reshape(a, around.shape()), reshape(b, around.shape()), reverse), b.shape());
}

}  // namespace lockstep::ops
