// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/distances.h"

#include <cstdint>
#include <string>
#include <vector>

#include "amp/autocast/autocast.h"
#include "runtime/autograd/cast.h"
#include "runtime/base/error.h"
#include "runtime/ops/elementwise.h"
#include "runtime/ops/movement.h"
#include "runtime/ops/promoted.h"
#include "runtime/ops/result.h"
#include "runtime/ops/shape.h"
#include "runtime/ops/vector_norm.h"
#include "runtime/ops/without_autocast.h"

namespace lockstep::ops {

namespace {

void require_order(const char* function, double order) {
  if (!(order >= 0))
    throw UsageError(std::string(function) + " of order " + std::to_string(order) + ", which is below 0");
}

Tensor norm_of_difference(const Tensor& a, const Tensor& b, double order, const Dims& dims) {
  const DType wide = wide_of(a.dtype());
  return autograd::cast(vector_norm(sub(autograd::cast(a, wide), autograd::cast(b, wide)), order, dims), a.dtype());
}

}  // namespace

Tensor dist(const Tensor& first, const Tensor& second, double order) {
  const auto [a, b] = Operands(amp::Op::kDist, first, second);
  const WithoutAutocast as_they_are;
  return norm_of_difference(a, b, order, {});
}

Tensor cdist(const Tensor& first, const Tensor& second, double order) {
  require_order("cdist", order);
  const auto [a, b] = Operands(amp::Op::kCdist, first, second);
  if (a.shape().rank() < 2 || b.shape().rank() < 2 || a.shape().back() != b.shape().back()) {
    throw ShapeError("cdist of " + describe(a) + " and " + describe(b) + ": expected [..., n, d] and [..., m, d]");
  }
  const WithoutAutocast as_they_are;
  return norm_of_difference(unsqueeze(a, -2), unsqueeze(b, -3), order, -1);
}

Tensor pdist(const Tensor& input, double order) {
  require_order("pdist", order);
  const Tensor x = amp::autocast(amp::Op::kPdist, input);
  if (x.shape().rank() != 2) throw ShapeError("pdist of " + describe(x) + ": expected [n, d]");
  const WithoutAutocast as_it_is;
  const DType wide = wide_of(x.dtype());
  const Tensor rows = autograd::cast(x, wide);
  std::vector<Tensor> differences{rows.rows(0, 0)};
  for (std::int64_t i = 0; i + 1 < x.size(0); ++i) {
    differences.push_back(sub(rows.rows(i, i + 1), rows.rows(i + 1, x.size(0))));
  }
  return autograd::cast(vector_norm(cat(differences, 0), order, -1), x.dtype());
}

}  // namespace lockstep::ops
