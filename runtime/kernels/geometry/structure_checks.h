// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "runtime/kernels/movement.h"

/// Checks of the operands of the families of structure (movement, dim_reductions, scans, softmax over a middle,
/// indexing). operand_checks.h has those of the others.
namespace lockstep::kernels::checks {

void copy_strided(const Tensor& in, const Walk& from, const Shape& extents, const Tensor& out, const Walk& to);

/// [outer, n, inner], whose middle a function works along.
struct Middle {
  std::int64_t outer, n, inner;
};
Middle sum_dim(const Tensor& x, const Tensor& out);
Middle variance_dim(const Tensor& x, const Tensor& variance);
Middle extreme_dim(const Tensor& x, const Tensor& values, const Tensor& indices);
Middle extreme_shares(const Tensor& x, const Tensor& extremes, const Tensor& shares);
Middle scan(const Tensor& a, const Tensor& b, const Tensor& y);
/// x's extents; indices [outer, k, inner] are int64, with k <= n.
Middle order(const Tensor& x, const Tensor& indices);
Middle softmax_middle(const Tensor& x, const Tensor& y);
Middle softmax_middle_backward(const Tensor& y, const Tensor& dy, const Tensor& dx);

/// x [outer, n, inner] and picked [outer, m, inner]; whether each (o, i) has indices of its own.
struct Picking {
  std::int64_t outer, n, m, inner;
  bool own_indices;

  /// The place in `indices` of the index of picked's element (o, k, i).
  std::int64_t index_at(std::int64_t o, std::int64_t k, std::int64_t i) const {
    return own_indices ? (o * m + k) * inner + i : k;
  }
};
/// gather; scatter and scatter_add with the two tensors exchanged.
Picking picking(std::string_view operation, const Tensor& whole, const Tensor& indices, const Tensor& picked);
/// The place of the first index outside [0, n); -1 where there is none.
std::int64_t first_outside(std::span<const std::int64_t> indices, std::int64_t n);
/// Throws an error that names the first index outside [0, n). The indices lie on the CPU.
void indices_in_range(std::string_view operation, const Tensor& indices, std::int64_t n);

}  // namespace lockstep::kernels::checks
