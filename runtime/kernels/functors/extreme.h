// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/base/host_device.h"
#include "runtime/kernels/reduction_kinds.h"

namespace lockstep::kernels {

/// Whether x takes the place of `best`, which came before it. A NaN beats every number and no NaN. Free of branches.
template <class Real>
[[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline bool is_more_extreme(Extreme which, Real x, Real best) {
  const bool beats = which == Extreme::kLargest ? x > best : x < best;
  return beats | ((x != x) & (best == best));
}

/// Whether x is as extreme as the extreme: equal, or both NaN.
template <class Real>
[[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline bool is_extreme(Real x, Real extreme) {
  return (x == extreme) | ((x != x) & (extreme != extreme));
}

}  // namespace lockstep::kernels
