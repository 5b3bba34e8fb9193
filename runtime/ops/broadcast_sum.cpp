// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/broadcast_sum.h"

#include "runtime/base/error.h"
#include "runtime/kernels/assign.h"
#include "runtime/kernels/batch_norm.h"
#include "runtime/kernels/elementwise.h"
#include "runtime/kernels/reductions.h"
#include "runtime/ops/dim_sums.h"
#include "runtime/ops/result.h"
#include "runtime/ops/shape.h"

namespace lockstep::ops {

namespace {

/// The dimensions of `from` that a tensor of shape `to` is repeated along.
DimSet repeated(const Shape& from, const Shape& to) {
  const int missing = from.rank() - to.rank();
  if (missing < 0) throw ShapeError("cannot sum " + from.str() + " to " + to.str());
  DimSet dims{};
  for (int d = 0; d < from.rank(); ++d) {
    const std::int64_t kept = d < missing ? 1 : to[d - missing];
    if (kept != from[d] && kept != 1) throw ShapeError("cannot sum " + from.str() + " to " + to.str());
    dims[static_cast<std::size_t>(d)] = d < missing || kept != from[d];
  }
  return dims;
}

/// The product of the marked extents where the marked dimensions are the first ones, extents of 1 aside; 0 otherwise.
std::int64_t leading_rows(const Shape& shape, const DimSet& dims) {
  std::int64_t rows = 1;
  bool kept = false;
  for (int d = 0; d < shape.rank(); ++d) {
    if (shape[d] == 1) continue;
    if (!dims[static_cast<std::size_t>(d)]) {
      kept = true;
    } else if (kept) {
      return 0;
    } else {
      rows *= shape[d];
    }
  }
  return rows;
}

/// out = sums, or out += sums
void put(const Tensor& sums, bool accumulate, const Tensor& out) {
  accumulate ? kernels::accumulate(sums, out) : kernels::cast(sums, out);
}

}  // namespace

void sum_broadcast(const Tensor& x, bool accumulate, const Tensor& out) {
  const DimSet dims = repeated(x.shape(), out.shape());
  const kernels::Reductions& reductions = kernels::Reductions::on(x.device());
  if (x.numel() == 0) {
    if (!accumulate) kernels::fill(out, 0);
    return;
  }
  if (const std::int64_t rows = leading_rows(x.shape(), dims); rows > 0) {
    const std::int64_t channels = out.numel();
    return reductions.sum_rows(x.detach({rows, channels}), accumulate, out.detach({channels}));
  }
  // Sums that are added to `out` stay wide until they are added.
  const DType wide = x.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  const Tensor sums =
      sum_over(x, dims, kernels::Term::kValue, 1.0, accumulate ? wide : out.dtype()).detach(out.shape());
  put(sums, accumulate, out);
}

void sum_of_products(const Tensor& a, const Tensor& b, bool accumulate, const Tensor& out) {
  const kernels::BatchNormalization& batch_normalization = kernels::BatchNormalization::on(a.device());
  const kernels::Elementwise& elementwise = kernels::Elementwise::on(a.device());
  const DType wide = wide_of(a.dtype());
  const std::int64_t channels = out.numel();
  const std::int64_t rows =
      a.numel() > 0 && a.shape() == b.shape() ? leading_rows(a.shape(), repeated(a.shape(), out.shape())) : 0;
  if (wide != a.dtype() && rows > 0) {
    // In one pass: the sums by channel that batch norm's backward needs, about a mean of 0.
    const Tensor mean = Tensor::zeros({channels}, wide, a.device()), sums = empty_like(mean),
                 products = empty_like(mean);
    const Shape matrix{rows, channels};
    batch_normalization.batch_norm_backward_reduce(b.detach(matrix), mean, {.dy = a.detach(matrix)}, {}, sums, products,
                                                   {});
    return put(products.detach(out.shape()), accumulate, out);
  }
  const Tensor products = Tensor::empty(a.shape(), wide, a.device());
  const auto widened = [wide](const Tensor& x) { return x.dtype() == wide ? x : converted(x, wide); };
  elementwise.multiply(widened(a), widened(b), products);
  sum_broadcast(products, accumulate, out);
}

}  // namespace lockstep::ops
