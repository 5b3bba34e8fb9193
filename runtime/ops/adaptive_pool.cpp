// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/adaptive_pool.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "runtime/autograd/cast.h"
#include "runtime/base/error.h"
#include "runtime/ops/movement.h"
#include "runtime/ops/pool.h"
#include "runtime/ops/reduce.h"
#include "runtime/ops/shape.h"
#include "runtime/ops/without_autocast.h"

namespace lockstep::ops {

namespace {

/// A part of x along a dimension to its one element there.
using Reduce = std::function<Tensor(const Tensor& part, int dim)>;

void require_extents(const char* function, const Tensor& x, const Shape& extents) {
  require_defined(x, function, "x");
  const int spatial = x.shape().rank() - 2;
  bool fits = is_floating(x.dtype()) && spatial >= 1 && spatial <= 3 && extents.rank() == spatial;
  for (int d = 0; fits && d < spatial; ++d) fits = extents[d] >= 1 && x.size(d + 1) >= 1;
  if (fits) return;
  throw ShapeError(
      std::string(function) + " of " + describe(x) + " to " + extents.str() +
      ": expected floating [N, spatial..., C] with 1 to 3 spatial dimensions that are not empty, and as many "
      "extents >= 1");
}

bool divide(const Shape& extents, const Shape& x) {
  for (int d = 0; d < extents.rank(); ++d) {
    if (x[d + 1] % extents[d] != 0) return false;
  }
  return true;
}

Tensor pool_evenly(const Tensor& x, const Shape& extents, kernels::PoolKind kind) {
  kernels::PoolGeometry geometry{.kind = kind, .spatial_rank = extents.rank()};
  for (int d = 0; d < extents.rank(); ++d) {
    const auto at = static_cast<std::size_t>(d);
    geometry.window[at] = geometry.stride[at] = x.size(d + 1) / extents[d];
  }
  return pool(x, geometry);
}

/// One dimension after the other, the last one first: so of equal maxima the first in memory is found.
Tensor pool_each(Tensor y, const Shape& extents, const Reduce& reduce) {
  for (int d = extents.rank(); d >= 1; --d) {
    const std::int64_t n = y.size(d), k = extents[d - 1];
    if (n == k) continue;
    std::vector<Tensor> parts;
    for (std::int64_t i = 0; i < k; ++i) parts.push_back(reduce(slice(y, d, i * n / k, ((i + 1) * n + k - 1) / k), d));
    y = cat(parts, d);
  }
  return y;
}

}  // namespace

Tensor adaptive_average_pool(const Tensor& x, const Shape& extents) {
  require_extents("adaptive_average_pool", x, extents);
  if (divide(extents, x.shape())) return pool_evenly(x, extents, kernels::PoolKind::kAverage);
  const WithoutAutocast as_it_is;
  const auto mean_of = [](const Tensor& part, int dim) { return mean(part, dim, true); };
  return autograd::cast(pool_each(autograd::cast(x, wide_of(x.dtype())), extents, mean_of), x.dtype());
}

Tensor adaptive_max_pool(const Tensor& x, const Shape& extents) {
  require_extents("adaptive_max_pool", x, extents);
  if (divide(extents, x.shape())) return pool_evenly(x, extents, kernels::PoolKind::kMax);
  return pool_each(x, extents, [](const Tensor& part, int dim) { return max(part, dim, true).values; });
}

}  // namespace lockstep::ops
