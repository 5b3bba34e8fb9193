// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <concepts>
#include <string>
#include <type_traits>

#include "runtime/base/error.h"
#include "runtime/base/host_device.h"
#include "runtime/kernels/functors/exponential.h"
#include "runtime/kernels/functors/logarithm.h"
#include "runtime/kernels/pair_loss.h"

// The losses of pairs that losses.h lists, one struct each: value(x, t) and its derivatives by_x(x, t) and
// by_target(x, t), of floats, free of branches and calls, for loops and kernels, and of doubles, for float64 and as the
// oracle of the others. One with a parameter is constructed from a PairLossFunction. `PairLosses` at the end lists
// them. Every device has one loop over that list.

namespace lockstep::kernels {

[[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float exp_of(float x) { return Exp::value(x); }
inline double exp_of(double x) { return std::exp(x); }
/// The natural logarithm of a positive finite number.
[[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float log_of(float x) { return LogParts(x).natural(0.0f); }
inline double log_of(double x) { return std::log(x); }

struct SquaredDifference {
  static constexpr PairLoss kPairLoss = PairLoss::kSquare;

  template <class T>
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline T value(T x, T t) {
    return (x - t) * (x - t);
  }
  template <class T>
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline T by_x(T x, T t) {
    return T(2) * (x - t);
  }
  template <class T>
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline T by_target(T x, T t) {
    return by_x(t, x);
  }
};

/// Its derivative at 0 is 0, as PyTorch's.
struct AbsoluteDifference {
  static constexpr PairLoss kPairLoss = PairLoss::kAbsolute;

  template <class T>
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline T value(T x, T t) {
    return x < t ? t - x : x - t;
  }
  template <class T>
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline T by_x(T x, T t) {
    return x > t ? T(1) : x < t ? T(-1) : T(0);
  }
  template <class T>
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline T by_target(T x, T t) {
    return by_x(t, x);
  }
};

struct Huber {
  static constexpr PairLoss kPairLoss = PairLoss::kHuber;

  double delta;

  explicit Huber(const PairLossFunction& function) : delta(function.parameter) {}

  template <class T>
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline T value(T x, T t) const {
    const T end = static_cast<T>(delta);
    const T size = AbsoluteDifference::value(x, t);
    return size <= end ? T(0.5) * size * size : end * (size - T(0.5) * end);
  }
  template <class T>
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline T by_x(T x, T t) const {
    const T end = static_cast<T>(delta);
    const T distance = x - t;
    const T raised = distance < -end ? -end : distance;
    return raised > end ? end : raised;
  }
  template <class T>
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline T by_target(T x, T t) const {
    return by_x(t, x);
  }
};

/// t log t and its derivative are 0 where t <= 0.
struct KlDivergence {
  static constexpr PairLoss kPairLoss = PairLoss::kKlDivergence;

  template <class T>
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline T value(T x, T t) {
    // A select behind the logarithm: before it, GCC would branch.
    const T entropy = t * log_of(t);
    return (t > T(0) ? entropy : T(0)) - t * x;
  }
  template <class T>
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline T by_x(T, T t) {
    return -t;
  }
  template <class T>
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline T by_target(T x, T t) {
    const T slope = log_of(t) + T(1);
    return (t > T(0) ? slope : T(0)) - x;
  }
};

struct KlDivergenceOfLogs {
  static constexpr PairLoss kPairLoss = PairLoss::kKlDivergenceOfLogs;

  template <class T>
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline T value(T x, T t) {
    return exp_of(t) * (t - x);
  }
  template <class T>
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline T by_x(T, T t) {
    return -exp_of(t);
  }
  template <class T>
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline T by_target(T x, T t) {
    return exp_of(t) * (t - x + T(1));
  }
};

template <class... Function>
struct PairLossList {};

using PairLosses = PairLossList<SquaredDifference, AbsoluteDifference, Huber, KlDivergence, KlDivergenceOfLogs>;

/// Calls visit(f) with the struct of a loss. Throws UsageError for one that is not in the list.
template <class Visit>
void visit_pair_loss(const PairLossFunction& function, Visit visit) {
  const auto construct = [&]<class F>(std::type_identity<F>) {
    if constexpr (std::constructible_from<F, const PairLossFunction&>) {
      return F(function);
    } else {
      return F{};
    }
  };
  const auto among = [&]<class... F>(PairLossList<F...>) {
    return ((function.kind == F::kPairLoss && (visit(construct(std::type_identity<F>{})), true)) || ...);
  };
  if (!among(PairLosses{})) {
    throw UsageError("loss " + std::to_string(static_cast<int>(function.kind)) + " is not in the list PairLosses");
  }
}

template <class Function>
struct SlopeByX {
  Function loss;

  template <class T>
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline T operator()(T x, T t) const {
    return loss.by_x(x, t);
  }
};

template <class Function>
struct SlopeByTarget {
  Function loss;

  template <class T>
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline T operator()(T x, T t) const {
    return loss.by_target(x, t);
  }
};

/// Calls visit(f) with the derivative of a loss by one of the pair, a function of x and t.
template <class Visit>
void visit_pair_slope(const PairLossFunction& function, PairSide side, Visit visit) {
  visit_pair_loss(function, [&]<class F>(F f) {
    if (side == PairSide::kX) {
      visit(SlopeByX<F>{f});
    } else {
      visit(SlopeByTarget<F>{f});
    }
  });
}

}  // namespace lockstep::kernels
