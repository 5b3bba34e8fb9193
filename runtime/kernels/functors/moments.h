// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/base/host_device.h"

namespace lockstep::kernels {

/// The mean of some values and the sum of their squared distances from it. The caller keeps their count, which
/// neighbouring channels share.
template <class Real>
struct Moments {
  Real mean = 0;
  Real m2 = 0;

  /// Joins `added` other values to the `count` of this. Chan, Golub, LeVeque: "Updating formulae and a pairwise
  /// algorithm for computing sample variances", 1979.
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE void add(Real count, const Moments& others, Real added) {
    if (added == 0) return;
    const Real share = added / (count + added);
    const Real distance = others.mean - mean;
    mean += distance * share;
    m2 += others.m2 + distance * distance * count * share;
  }
};

/// The moments of n values, in two passes.
template <int n, class Real>
[[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline Moments<Real> moments_of(const Real (&values)[n]) {
  Moments<Real> moments;
  for (int i = 0; i < n; ++i) moments.mean += values[i];
  moments.mean *= Real{1} / n;
  for (int i = 0; i < n; ++i) moments.m2 += (values[i] - moments.mean) * (values[i] - moments.mean);
  return moments;
}

}  // namespace lockstep::kernels
