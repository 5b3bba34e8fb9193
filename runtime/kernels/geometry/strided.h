// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "runtime/kernels/movement.h"

namespace lockstep::kernels {

/// A dimension of a copy: how many steps, and how far each goes in the source and in the target.
struct CopyDim {
  std::int64_t extent = 1;
  std::int64_t from = 0;
  std::int64_t to = 0;
};

/// The loops of a strided copy, outermost first: those along which the target moves least come last, and neighbours
/// that walk as one are one. No dimension of extent 1; none at all for a single element.
struct CopyPlan {
  int rank = 0;
  std::array<CopyDim, Shape::kMaxRank> dims{};
  std::int64_t elements = 1;  ///< 0: nothing to copy
  std::int64_t from = 0;      ///< of the first element
  std::int64_t to = 0;

  const CopyDim& innermost() const { return dims[static_cast<std::size_t>(rank - 1)]; }
  /// Whether the innermost loop copies neighbours to neighbours.
  bool runs() const { return rank > 0 && innermost().from == 1 && innermost().to == 1; }
  /// The loop along which the source's neighbours lie where the innermost one has the target's: the two are the
  /// transposition of a matrix. -1 where there is none of both extents `least` or more.
  int transposed_with(std::int64_t least) const;
  /// Takes a loop out and gives it.
  CopyDim take(int d);
};

CopyPlan plan_copy(const Walk& from, const Shape& extents, const Walk& to);

}  // namespace lockstep::kernels
