// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/broadcast_sum.h"

#include <utility>
#include <vector>

#include "runtime/kernels/backend.h"
#include "runtime/tensor/error.h"

namespace lockstep::ops {

namespace {

/// Neighbouring dimensions that are all summed over, or all kept.
struct Dimensions {
  std::int64_t extent;
  bool summed;
};

std::vector<Dimensions> together(const Shape& from, const Shape& to) {
  if (to.rank() > from.rank()) throw ShapeError("cannot sum " + from.str() + " to " + to.str());
  std::vector<Dimensions> result;
  for (int d = 0; d < from.rank(); ++d) {
    const int of_to = d - (from.rank() - to.rank());
    const std::int64_t kept = of_to < 0 ? 1 : to[of_to];
    if (kept != from[d] && kept != 1) throw ShapeError("cannot sum " + from.str() + " to " + to.str());
    if (from[d] == 1) continue;
    const bool summed = kept != from[d];
    if (!result.empty() && result.back().summed == summed) {
      result.back().extent *= from[d];
    } else {
      result.push_back({from[d], summed});
    }
  }
  return result;
}

Tensor ones(const Shape& shape, const Tensor& like) {
  const Tensor tensor = Tensor::empty(shape, like.dtype(), like.device());
  kernels::backend(like.device()).fill(tensor, 1);
  return tensor;
}

}  // namespace

void sum_broadcast(const Tensor& x, bool accumulate, const Tensor& out) {
  std::vector<Dimensions> left = together(x.shape(), out.shape());
  const kernels::Backend& backend = kernels::backend(x.device());
  if (left.empty()) left.push_back({1, true});
  if (x.numel() == 0) {
    if (!accumulate) backend.fill(out, 0);
    return;
  }
  Tensor sums = x.detach();
  // Sums between are kept wide.
  const DType wide = x.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  while (true) {
    const std::size_t at = left.front().summed ? 0 : 1;
    if (at >= left.size()) break;  // nothing is summed any more
    const std::int64_t outer = at == 0 ? 1 : left.front().extent;
    const std::int64_t n = left[at].extent;
    const std::int64_t inner = sums.numel() / (outer * n);
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(at));
    // What was apart because of the dimension between belongs together.
    if (at == 1 && left.size() > 1) {
      left[0].extent *= left[1].extent;
      left.erase(left.begin() + 1);
    }
    if (outer == 1 && (left.empty() || (left.size() == 1 && !left.front().summed))) {
      return backend.sum_rows(sums.reshaped({n, inner}), accumulate, out.detach().reshaped({inner}));
    }
    const Tensor next = Tensor::empty({outer, inner}, wide, x.device());
    if (outer == 1) {
      backend.sum_rows(sums.reshaped({n, inner}), false, next.reshaped({inner}));
    } else if (inner == 1) {
      backend.matmul(sums.reshaped({outer, n}), false, ones({n, 1}, sums), false, {}, false, next);
    } else {
      backend.matmul(ones({outer, 1, n}, sums), false, sums.reshaped({outer, n, inner}), false, {}, false,
                     next.reshaped({outer, 1, inner}));
    }
    sums = next;
    if (left.empty()) break;
  }
  const Tensor whole = sums.reshaped(out.shape());
  if (accumulate) {
    backend.accumulate(whole, out);
  } else {
    backend.cast(whole, out);
  }
}

}  // namespace lockstep::ops
