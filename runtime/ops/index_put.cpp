// SPDX-License-Identifier: Apache-2.0
// ops::index_put of indexing.h.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "amp/autocast/autocast.h"
#include "runtime/autograd/node.h"
#include "runtime/base/error.h"
#include "runtime/kernels/geometry/broadcast.h"
#include "runtime/kernels/indexing.h"
#include "runtime/ops/broadcast.h"
#include "runtime/ops/compare.h"
#include "runtime/ops/elementwise.h"
#include "runtime/ops/factories.h"
#include "runtime/ops/indexing.h"
#include "runtime/ops/movement.h"
#include "runtime/ops/shape.h"
#include "runtime/ops/without_autocast.h"

namespace lockstep::ops {

using autograd::BackwardContext;
using autograd::SavedTensor;

namespace {

void require_indices(const Tensor& x, const std::vector<Tensor>& indices) {
  const auto count = static_cast<std::int64_t>(indices.size());
  if (count < 1 || count > x.shape().rank()) {
    throw ShapeError(
        fmt::format("index_put of {}: {} indices, one for each of the first dimensions", describe(x), count));
  }
  for (int d = 0; d < static_cast<int>(count); ++d) {
    const Tensor& index = indices[static_cast<std::size_t>(d)];
    require_defined(index, "index_put", "an index");
    if (index.dtype() == DType::kBool) {
      throw ShapeError("index_put: a mask names no places", "Use masked_fill or where.");
    }
    if (index.dtype() != DType::kInt64) {
      throw ShapeError(fmt::format("index_put: indices must be int64, found {}", describe(index)));
    }
    if (index.device() != kCpu) continue;
    const auto values = index.as<std::int64_t>();
    const auto outside = [n = x.size(d)](std::int64_t value) { return value < -n || value >= n; };
    if (const auto at = std::ranges::find_if(values, outside); at != values.end()) {
      throw UsageError(fmt::format("index_put of {}: index {} of dimension {} is outside", describe(x), *at, d));
    }
  }
}

/// Which row of x, whose first dimensions are counted as one, each place is: [m]. -1 where an index is outside.
Tensor rows_at(const Tensor& x, const std::vector<Tensor>& indices, const Shape& places) {
  Tensor row, inside;
  for (int d = 0; d < static_cast<int>(indices.size()); ++d) {
    const Tensor index = indices[static_cast<std::size_t>(d)].detach();
    const auto n = static_cast<double>(x.size(d));
    const Tensor from_front = add(index, mul(lt(index, 0).to(DType::kInt64), n));
    const Tensor there = mul(ge(index, -n), lt(index, n));
    row = row.defined() ? add(mul(row, n), from_front) : from_front;
    inside = inside.defined() ? mul(inside, there) : there;
  }
  row = sub(mul(add(row, 1), inside.to(DType::kInt64)), 1);
  return expand(row, places).detach({places.numel()});
}

/// 1 for each place that keeps its value and 0 where a later one writes over it: [m, 1].
Tensor kept(const Tensor& rows, std::int64_t n, DType dtype) {
  const std::int64_t m = rows.numel();
  const Placement integers{DType::kInt64, rows.device()};
  const Tensor numbers = arange(m, integers), writers = full({n}, -1, integers);
  kernels::Indexing::on(rows.device()).scatter(numbers.detach({1, m, 1}), rows, writers.detach({1, n, 1}));
  return eq(index_select(writers, 0, rows), numbers).to(dtype).detach({m, 1});
}

/// x [n, rest] with values [m, rest] in these rows.
Tensor put_rows(const Tensor& x, const Tensor& values, const Tensor& rows) {
  const std::int64_t n = x.size(0), m = rows.numel(), rest = x.size(1);
  const Tensor y = Tensor::empty(x.shape(), x.dtype(), x.device());
  y.copy_from(x.detach());
  kernels::Indexing::on(x.device()).scatter(values.detach({1, m, rest}), rows, y.detach({1, n, rest}));
  autograd::record(
      y, name_of(amp::Op::kIndexPut), {x, values},
      {.recorded = [rows = SavedTensor(rows), m, n, rest](const Tensor& dy, const BackwardContext& context) {
        const Tensor& at = context.saved(rows);
        std::vector<Tensor> gradients(2);
        if (context.needs(0)) gradients[0] = put_rows(dy, new_zeros(dy, {m, rest}), at);
        if (context.needs(1)) gradients[1] = mul(index_select(dy, 0, at), kept(at, n, dy.dtype()));
        return gradients;
      }});
  return y;
}

}  // namespace

Tensor index_put(const Tensor& input, const std::vector<Tensor>& indices, const Tensor& input_values, bool accumulate) {
  require_defined(input, "index_put", "x");
  require_defined(input_values, "index_put", "the values");
  require_indices(input, indices);
  const Tensor x = amp::autocast_beside(amp::Op::kIndexPut, input, input_values);
  const Tensor values = amp::autocast_beside(amp::Op::kIndexPut, input_values, input);
  if (input.dtype() != input_values.dtype() && (!amp::Autocast::enabled() || x.dtype() != values.dtype())) {
    throw UsageError(fmt::format("index_put of {} and values {}: two dtypes", describe(input), describe(input_values)),
                     "Cast the values: values.to(x.dtype()).");
  }
  if (accumulate && !is_floating(x.dtype())) {
    throw UsageError(fmt::format("index_put of {}: integers do not accumulate", describe(x)),
                     "Cast x: x.to(DType::kFloat32).");
  }
  const WithoutAutocast as_they_are;
  const int named = static_cast<int>(indices.size());
  Shape places;
  for (const Tensor& index : indices) places = kernels::broadcast_shape("index_put", places, index.shape());
  std::vector<std::int64_t> extents(places.extents().begin(), places.extents().end());
  std::ranges::copy(x.shape().extents().subspan(static_cast<std::size_t>(named)), std::back_inserter(extents));
  std::int64_t n = 1;
  for (int d = 0; d < named; ++d) n *= x.size(d);
  std::int64_t rest = 1;
  for (int d = named; d < x.shape().rank(); ++d) rest *= x.size(d);
  const Tensor rows = rows_at(x, indices, places);
  const Tensor lines = reshape(x, {n, rest});
  const Tensor written = reshape(expand(values, Shape(extents)), {rows.numel(), rest});
  const Tensor y = accumulate ? add(lines, scatter_add(written, 0, rows, n)) : put_rows(lines, written, rows);
  return reshape(y, x.shape());
}

}  // namespace lockstep::ops
