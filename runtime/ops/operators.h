// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/ops/elementwise.h"

// + - * / on tensors and numbers, as ops::add, sub, mul and div say. There is no ==, which a reader might take for
// "the same tensor" or for one answer; ops::eq compares elements.

namespace lockstep {

[[nodiscard]] inline Tensor operator-(const Tensor& x) { return ops::neg(x); }

[[nodiscard]] inline Tensor operator+(const Tensor& a, const Tensor& b) { return ops::add(a, b); }
[[nodiscard]] inline Tensor operator+(const Tensor& a, double b) { return ops::add(a, b); }
[[nodiscard]] inline Tensor operator+(double a, const Tensor& b) { return ops::add(b, a); }

[[nodiscard]] inline Tensor operator-(const Tensor& a, const Tensor& b) { return ops::sub(a, b); }
[[nodiscard]] inline Tensor operator-(const Tensor& a, double b) { return ops::sub(a, b); }
[[nodiscard]] inline Tensor operator-(double a, const Tensor& b) { return ops::sub(a, b); }

[[nodiscard]] inline Tensor operator*(const Tensor& a, const Tensor& b) { return ops::mul(a, b); }
[[nodiscard]] inline Tensor operator*(const Tensor& a, double b) { return ops::mul(a, b); }
[[nodiscard]] inline Tensor operator*(double a, const Tensor& b) { return ops::mul(b, a); }

[[nodiscard]] inline Tensor operator/(const Tensor& a, const Tensor& b) { return ops::div(a, b); }
[[nodiscard]] inline Tensor operator/(const Tensor& a, double b) { return ops::div(a, b); }
[[nodiscard]] inline Tensor operator/(double a, const Tensor& b) { return ops::div(a, b); }

// In place: a's own elements are written, as by a.copy_from() of the result in a's dtype, and with its errors: an
// operand of which backward needs the old elements, or a result that a's shape does not hold, is refused; write a = a +
// b. Throws UsageError where a has integers and the result has none.
const Tensor& operator+=(const Tensor& a, const Tensor& b);
const Tensor& operator+=(const Tensor& a, double b);
const Tensor& operator-=(const Tensor& a, const Tensor& b);
const Tensor& operator-=(const Tensor& a, double b);
const Tensor& operator*=(const Tensor& a, const Tensor& b);
const Tensor& operator*=(const Tensor& a, double b);
const Tensor& operator/=(const Tensor& a, const Tensor& b);
const Tensor& operator/=(const Tensor& a, double b);

}  // namespace lockstep
