// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <variant>
#include <vector>

#include "runtime/tensor/tensor.h"

namespace lockstep::ops {

/// begin:end:step of Python: negative places count from the end, and those behind it are the end. step >= 1.
struct Slice {
  static constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();
  std::int64_t begin = 0;
  std::int64_t end = kEnd;
  std::int64_t step = 1;
};
/// As many whole dimensions as the other places leave, Python's "...".
struct Ellipsis {};
/// A new dimension of extent 1, Python's None.
struct NewAxis {};

/// A number takes one place of a dimension, which is then gone; negative: counted from the end.
using Place = std::variant<std::int64_t, Slice, Ellipsis, NewAxis>;

/// x[places] of NumPy and PyTorch, for numbers and ranges; dimensions behind the last place are whole. Any dtype; a
/// gradient flows through floating ones. It may share x's data: who writes to it copies it first. Throws ShapeError for
/// a place that is not there and for more places than dimensions, UsageError for a second Ellipsis. Places that a
/// tensor names: index_select, gather and masked_fill.
[[nodiscard]] Tensor index(const Tensor& x, const std::vector<Place>& places);

}  // namespace lockstep::ops

namespace lockstep {

template <class... Places>
Tensor Tensor::operator()(const Places&... places) const {
  return ops::index(*this, {ops::Place(places)...});
}

}  // namespace lockstep
