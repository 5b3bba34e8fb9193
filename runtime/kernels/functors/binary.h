// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <concepts>
#include <string>
#include <type_traits>

#include "runtime/base/error.h"
#include "runtime/base/host_device.h"
#include "runtime/kernels/binary.h"
#include "runtime/kernels/functors/arctangent.h"
#include "runtime/kernels/functors/power.h"

// The functions of two and of three numbers that kernels apply element by element, one struct each. value() of floats,
// for loops and kernels, is free of branches and calls. value() of doubles is for float64, and the float one's oracle.
// `Binaries` and `Ternaries` at the end list them. Every device has one loop over each list.

namespace lockstep::kernels {

struct Add {
  static constexpr Binary kBinary = Binary::kAdd;

  template <class T>
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline T value(T a, T b) {
    return a + b;
  }
};

struct Sub {
  static constexpr Binary kBinary = Binary::kSub;

  template <class T>
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline T value(T a, T b) {
    return a - b;
  }
};

struct Mul {
  static constexpr Binary kBinary = Binary::kMul;

  template <class T>
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline T value(T a, T b) {
    return a * b;
  }
};

struct Div {
  static constexpr Binary kBinary = Binary::kDiv;

  template <class T>
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline T value(T a, T b) {
    return a / b;
  }
};

struct Pow {
  static constexpr Binary kBinary = Binary::kPow;

  template <class T>
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline T value(T a, T b) {
    return power(a, b);
  }
};

struct Maximum {
  static constexpr Binary kBinary = Binary::kMaximum;

  template <class T>
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline T value(T a, T b) {
    return a < b || b != b ? b : a;
  }
};

struct Minimum {
  static constexpr Binary kBinary = Binary::kMinimum;

  template <class T>
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline T value(T a, T b) {
    return a > b || b != b ? b : a;
  }
};

struct Prelu {
  static constexpr Binary kBinary = Binary::kPrelu;

  template <class T>
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline T value(T a, T b) {
    return a > T(0) ? a : b * a;
  }
};

struct Atan2 {
  static constexpr Binary kBinary = Binary::kAtan2;

  template <class T>
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline T value(T a, T b) {
    return angle_of(a, b);
  }
};

struct Equal {
  static constexpr Binary kBinary = Binary::kEqual;

  template <class T>
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline T value(T a, T b) {
    return a == b ? T(1) : T(0);
  }
};

struct NotEqual {
  static constexpr Binary kBinary = Binary::kNotEqual;

  template <class T>
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline T value(T a, T b) {
    return a != b ? T(1) : T(0);
  }
};

struct Less {
  static constexpr Binary kBinary = Binary::kLess;

  template <class T>
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline T value(T a, T b) {
    return a < b ? T(1) : T(0);
  }
};

struct LessEqual {
  static constexpr Binary kBinary = Binary::kLessEqual;

  template <class T>
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline T value(T a, T b) {
    return a <= b ? T(1) : T(0);
  }
};

struct Greater {
  static constexpr Binary kBinary = Binary::kGreater;

  template <class T>
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline T value(T a, T b) {
    return a > b ? T(1) : T(0);
  }
};

struct GreaterEqual {
  static constexpr Binary kBinary = Binary::kGreaterEqual;

  template <class T>
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline T value(T a, T b) {
    return a >= b ? T(1) : T(0);
  }
};

struct Where {
  static constexpr Ternary kTernary = Ternary::kWhere;

  template <class T>
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline T value(T a, T b, T c) {
    return a != T(0) ? b : c;
  }
};

struct Lerp {
  static constexpr Ternary kTernary = Ternary::kLerp;

  template <class T>
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline T value(T a, T b, T c) {
    return a + c * (b - a);
  }
};

struct Addcmul {
  static constexpr Ternary kTernary = Ternary::kAddcmul;

  double parameter;

  explicit Addcmul(const TernaryFunction& function) : parameter(function.parameter) {}

  template <class T>
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline T value(T a, T b, T c) const {
    return a + static_cast<T>(parameter) * b * c;
  }
};

struct Addcdiv {
  static constexpr Ternary kTernary = Ternary::kAddcdiv;

  double parameter;

  explicit Addcdiv(const TernaryFunction& function) : parameter(function.parameter) {}

  template <class T>
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline T value(T a, T b, T c) const {
    return a + static_cast<T>(parameter) * b / c;
  }
};

struct PreluBackward {
  static constexpr Ternary kTernary = Ternary::kPreluBackward;

  template <class T>
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline T value(T a, T b, T c) {
    return a > T(0) ? c : b * c;
  }
};

struct MaximumBackward {
  static constexpr Ternary kTernary = Ternary::kMaximumBackward;

  template <class T>
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline T value(T a, T b, T c) {
    return a > b ? c : a == b ? c / T(2) : T(0);
  }
};

template <class... Function>
struct BinaryList {};
template <class... Function>
struct TernaryList {};

using Binaries = BinaryList<Add, Sub, Mul, Div, Pow, Maximum, Minimum, Prelu, Atan2, Equal, NotEqual, Less, LessEqual,
                            Greater, GreaterEqual>;
using Ternaries = TernaryList<Where, Lerp, Addcmul, Addcdiv, PreluBackward, MaximumBackward>;

/// Calls visit(f) with the struct of a function. Throws UsageError for one that is not in the list.
template <class Visit>
void visit_binary(Binary function, Visit visit) {
  const auto among = [&]<class... F>(BinaryList<F...>) {
    return ((function == F::kBinary && (visit(F{}), true)) || ...);
  };
  if (!among(Binaries{})) {
    throw UsageError("function " + std::to_string(static_cast<int>(function)) + " is not in the list Binaries");
  }
}

/// Calls visit(f) with the struct of a function of three numbers, constructed from `function` where it has a parameter.
/// Throws UsageError for one that is not in the list.
template <class Visit>
void visit_ternary(const TernaryFunction& function, Visit visit) {
  const auto among = [&]<class... F>(TernaryList<F...>) {
    const auto construct = [&]<class G>(std::type_identity<G>) {
      if constexpr (std::constructible_from<G, const TernaryFunction&>) {
        return G(function);
      } else {
        return G{};
      }
    };
    return ((function.kind == F::kTernary && (visit(construct(std::type_identity<F>{})), true)) || ...);
  };
  if (!among(Ternaries{})) {
    throw UsageError("function " + std::to_string(static_cast<int>(function.kind)) + " is not in the list Ternaries");
  }
}

}  // namespace lockstep::kernels
