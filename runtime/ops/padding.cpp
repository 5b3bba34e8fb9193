// SPDX-License-Identifier: Apache-2.0
// The operations of movement.h that are made of its others: rolled, padded and triangular tensors.
#include <fmt/format.h>

#include <vector>

#include "runtime/base/error.h"
#include "runtime/ops/compare.h"
#include "runtime/ops/elementwise.h"
#include "runtime/ops/factories.h"
#include "runtime/ops/indexing.h"
#include "runtime/ops/movement.h"
#include "runtime/ops/shape.h"

namespace lockstep::ops {

namespace {

/// The dimension; a scalar has none to work along.
int real_dim(const char* operation, const Tensor& x, int dim) {
  const int found = dim_of(operation, dim, x);
  if (x.shape().rank() == 0) throw ShapeError(fmt::format("{}: a scalar has no dimension", operation));
  return found;
}

/// `count` places of what the mode puts before x's elements, or behind them.
Tensor beside(const Tensor& x, int dim, std::int64_t count, bool before, const PadOptions& options) {
  const std::int64_t n = x.size(dim);
  switch (options.mode) {
    case PadMode::kConstant:
      return new_full(x, x.shape().with(dim, count), options.value);
    case PadMode::kReflect:
      return flip(before ? slice(x, dim, 1, 1 + count) : slice(x, dim, n - 1 - count, n - 1), dim);
    case PadMode::kReplicate: {
      std::vector<std::int64_t> times(static_cast<std::size_t>(x.shape().rank()), 1);
      times[static_cast<std::size_t>(dim)] = count;
      return repeat(before ? slice(x, dim, 0, 1) : slice(x, dim, n - 1, n), times);
    }
    case PadMode::kCircular:
      return before ? slice(x, dim, n - count, n) : slice(x, dim, 0, count);
  }
  throw UsageError("pad: no such mode");
}

/// How many elements along the dimension a side of `count` places is made of.
std::int64_t needed(std::int64_t count, PadMode mode) {
  if (count == 0 || mode == PadMode::kConstant) return 0;
  if (mode == PadMode::kReplicate) return 1;
  return mode == PadMode::kReflect ? count + 1 : count;
}

/// bool [rows, columns]: which places lie right of the diagonal.
Tensor beyond(const Tensor& x, const char* operation, std::int64_t diagonal) {
  require_defined(x, operation, "the input");
  if (x.shape().rank() < 2)
    throw ShapeError(fmt::format("{} of {}: it has no rows and columns", operation, describe(x)));
  const Placement place{DType::kFloat32, x.device()};
  const Tensor rows = arange(x.size(-2), place), columns = arange(x.size(-1), place);
  return gt(columns, add(unsqueeze(rows, 1), static_cast<double>(diagonal)));
}

}  // namespace

Tensor roll(const Tensor& x, std::int64_t shift, int dim_in) {
  const int dim = real_dim("roll", x, dim_in);
  const std::int64_t n = x.size(dim);
  const std::int64_t places = n == 0 ? 0 : ((shift % n) + n) % n;
  if (places == 0) return x;
  return cat({slice(x, dim, n - places, n), slice(x, dim, 0, n - places)}, dim);
}

Tensor pad(const Tensor& x, int dim_in, std::int64_t before, std::int64_t after, const PadOptions& options) {
  const int dim = real_dim("pad", x, dim_in);
  for (const std::int64_t count : {before, after}) {
    if (count < 0) throw ShapeError(fmt::format("pad: {} places; slice() takes some away", count));
    if (needed(count, options.mode) > x.size(dim)) {
      throw ShapeError(fmt::format("pad of {} along dimension {}: {} places need {} elements", describe(x), dim, count,
                                   needed(count, options.mode)));
    }
  }
  std::vector<Tensor> parts;
  if (before > 0) parts.push_back(beside(x, dim, before, true, options));
  parts.push_back(x);
  if (after > 0) parts.push_back(beside(x, dim, after, false, options));
  return parts.size() == 1 ? x : cat(parts, dim);
}

Tensor tril(const Tensor& x, std::int64_t diagonal) { return masked_fill(x, beyond(x, "tril", diagonal), 0); }
Tensor triu(const Tensor& x, std::int64_t diagonal) { return where(beyond(x, "triu", diagonal - 1), x, 0); }

}  // namespace lockstep::ops
