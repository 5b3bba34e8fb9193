// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/operators.h"

#include "runtime/base/error.h"

namespace lockstep {

namespace {

const Tensor& assign(const Tensor& a, const Tensor& result) {
  if (is_floating(result.dtype()) && !is_floating(a.dtype())) {
    throw UsageError("a result of " + std::string(name_of(result.dtype())) + " cannot be written to " + describe(a),
                     "Write a new tensor, or round: a.copy_from(result.to(a.dtype())).");
  }
  a.copy_from(result.to(a.dtype()));
  return a;
}

}  // namespace

const Tensor& operator+=(const Tensor& a, const Tensor& b) { return assign(a, a + b); }
const Tensor& operator+=(const Tensor& a, double b) { return assign(a, a + b); }
const Tensor& operator-=(const Tensor& a, const Tensor& b) { return assign(a, a - b); }
const Tensor& operator-=(const Tensor& a, double b) { return assign(a, a - b); }
const Tensor& operator*=(const Tensor& a, const Tensor& b) { return assign(a, a * b); }
const Tensor& operator*=(const Tensor& a, double b) { return assign(a, a * b); }
const Tensor& operator/=(const Tensor& a, const Tensor& b) { return assign(a, a / b); }
const Tensor& operator/=(const Tensor& a, double b) { return assign(a, a / b); }

}  // namespace lockstep
