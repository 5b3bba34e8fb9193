// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/tensor/tensor.h"

// Order along a dimension, of any dtype. Equal elements keep their order, on every device and for every number of
// threads. NaN is greater than every number: it is the last one in ascending order. A gradient flows to the elements
// that the values come from. A scalar is a line of one element.

namespace lockstep::ops {

/// Elements in order, and their places in x, int64.
struct Sorted {
  Tensor values;
  Tensor indices;
};
[[nodiscard]] Sorted sort(const Tensor& x, int dim = -1, bool descending = false);
/// sort()'s indices.
[[nodiscard]] Tensor argsort(const Tensor& x, int dim = -1, bool descending = false);

/// The k largest or smallest elements along a dimension, the most extreme one first. The result has the extent k there.
/// Throws ShapeError unless 0 <= k <= the extent.
[[nodiscard]] Sorted topk(const Tensor& x, std::int64_t k, int dim = -1, bool largest = true);

}  // namespace lockstep::ops
