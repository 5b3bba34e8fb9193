// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/index.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/ops/dims.h"
#include "runtime/ops/movement.h"
#include "runtime/ops/shape.h"

namespace lockstep::ops {

namespace {

/// How many dimensions of the input the places name.
int named_dims(const std::vector<Place>& places) {
  return static_cast<int>(std::ranges::count_if(places, [](const Place& place) {
    return std::holds_alternative<std::int64_t>(place) || std::holds_alternative<Slice>(place);
  }));
}

Tensor places_of(const Tensor& x, int dim, const Slice& given) {
  if (given.step != 1 || dim > 0) return slice(x, dim, given.begin, given.end, given.step);
  const Range range = range_in(x.size(0), given.begin, given.end);
  return range.begin == 0 && range.end == x.size(0) ? x : x.rows(range.begin, range.end);
}

}  // namespace

Tensor index(const Tensor& x, const std::vector<Place>& places) {
  require_defined(x, "index", "the input");
  const int named = named_dims(places), rank = x.shape().rank();
  if (named > rank) throw ShapeError(fmt::format("index: {} places in {}", named, describe(x)));
  Tensor result = x;
  int dim = 0;
  bool had_ellipsis = false;
  for (const Place& place : places) {
    if (const auto* at = std::get_if<std::int64_t>(&place)) {
      result = dim == 0 ? result[*at] : select(result, dim, *at);
    } else if (const auto* range = std::get_if<Slice>(&place)) {
      result = places_of(result, dim++, *range);
    } else if (std::holds_alternative<NewAxis>(place)) {
      result = unsqueeze(result, dim++);
    } else {
      if (had_ellipsis) throw UsageError("index: a second Ellipsis", "The first one leaves it nothing to stand for.");
      had_ellipsis = true;
      dim += rank - named;
    }
  }
  return result;
}

}  // namespace lockstep::ops
