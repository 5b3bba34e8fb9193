// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include "runtime/base/host_device.h"

// The recursions of connectionist temporal classification (Graves et al., 2006), in logarithms and float64: a sum over
// thousands of elements loses no digits of a float32 loss. A path visits the states of a sample: its labels, with a
// blank before, between and behind them.

namespace lockstep::kernels {

/// log(e^a + e^b + e^c). -inf for three of them; NaN where one is NaN.
LOCKSTEP_HOST_DEVICE inline double log_add(double a, double b, double c) {
  double most = a > b ? a : b;
  most = most > c ? most : c;
  if (most == -INFINITY) return a + b + c;
  return most + std::log(std::exp(a - most) + std::exp(b - most) + std::exp(c - most));
}

/// The states of a sample.
struct CtcStates {
  const std::int64_t* labels;
  std::int64_t labels_count;
  std::int64_t blank;

  LOCKSTEP_HOST_DEVICE std::int64_t count() const { return 2 * labels_count + 1; }
  /// The class that state s emits.
  LOCKSTEP_HOST_DEVICE std::int64_t emits(std::int64_t s) const { return s % 2 == 0 ? blank : labels[s / 2]; }
  /// Whether a path may go from state s - 2 to s: past the blank between two labels that differ.
  LOCKSTEP_HOST_DEVICE bool skips_to(std::int64_t s) const {
    return s % 2 == 1 && s >= 3 && labels[s / 2] != labels[s / 2 - 1];
  }

  /// The logarithm of the probability of all paths that are in state s at an element, its emission left out; `before`:
  /// those of the element before it, emissions included. Null: it is the first element.
  LOCKSTEP_HOST_DEVICE double reached(const double* before, std::int64_t s) const {
    if (before == nullptr) return s < 2 ? 0 : -INFINITY;
    return log_add(before[s], s >= 1 ? before[s - 1] : -INFINITY, skips_to(s) ? before[s - 2] : -INFINITY);
  }
  /// The logarithm of the probability of all paths from state s to the end, its own emission left out; `after`: those
  /// of the element behind it, emissions included. Null: it is the last element.
  LOCKSTEP_HOST_DEVICE double left(const double* after, std::int64_t s) const {
    if (after == nullptr) return s >= count() - 2 ? 0 : -INFINITY;
    return log_add(after[s], s + 1 < count() ? after[s + 1] : -INFINITY,
                   s + 2 < count() && skips_to(s + 2) ? after[s + 2] : -INFINITY);
  }
  /// The loss, given the paths of the last element, emissions included.
  LOCKSTEP_HOST_DEVICE double loss(const double* last) const {
    return -log_add(last[count() - 1], count() > 1 ? last[count() - 2] : -INFINITY, -INFINITY);
  }
};

}  // namespace lockstep::kernels
