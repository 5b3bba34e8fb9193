// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cpu/loops/block.inl.h"

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {
namespace {

/// Whether the function's vector code holds for all n numbers.
template <class Function>
bool is_within_limit(const float* x, std::int64_t n) {
  std::int32_t within = 1;
  for (std::int64_t i = 0; i < n; ++i) within &= std::fabs(x[i]) <= Function::kLimit ? 1 : 0;
  return within != 0;
}

/// The function's vector code where it holds for the whole block, else the exact function.
template <class Function>
void values_of_block(const void* which, std::int64_t n, float* out, const float* const* in) {
  const Function function = *static_cast<const Function*>(which);
  const float* const x = in[0];
  if (is_within_limit<Function>(x, n)) {
    return transform_block(
        n, out, [function](float v) { return function.value(v); }, x);
  }
  for (std::int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(function.exact(static_cast<double>(x[i])));
}

/// As values_of_block(), of the gradient of the function's input: in[0] is where, in[1] that of its result.
template <class Function>
void gradients_of_block(const void* which, std::int64_t n, float* out, const float* const* in) {
  const Function function = *static_cast<const Function*>(which);
  const float* const at = in[0];
  const float* const dy = in[1];
  if (is_within_limit<Function>(at, n)) {
    return transform_block(
        n, out, [function](float v, float d) { return function.backward(v, d); }, at, dy);
  }
  for (std::int64_t i = 0; i < n; ++i) {
    const double slope = function.exact_derivative(static_cast<double>(at[i]));
    out[i] = static_cast<float>(static_cast<double>(dy[i]) * slope);
  }
}

void unary(const UnaryFunction& which, Input x, Output y, std::int64_t total) {
  visit_unary(which, [&]<class Function>(Function function) {
    if constexpr (HasBits<Function>) {
      if (x.dtype == y.dtype && size_of(x.dtype) == sizeof(std::uint16_t)) {
        return transform_block(
            total, static_cast<std::uint16_t*>(y.data), [](std::uint16_t v) { return Function::bits(v); },
            static_cast<const std::uint16_t*>(x.data));
      }
    }
    if constexpr (HasLimit<Function>) {
      transform_blocks(total, y, {&function, values_of_block<Function>}, Reader(x));
    } else {
      transform(
          total, y, [function](float v) { return function.value(v); }, x);
    }
  });
}

void unary_backward(const UnaryFunction& which, Input at, Input dy, Output dx, std::int64_t total) {
  visit_unary(which, [&]<class Function>(Function function) {
    if constexpr (HasLimit<Function>) {
      transform_blocks(total, dx, {&function, gradients_of_block<Function>}, Reader(at), Reader(dy));
    } else {
      transform(
          total, dx, [function](float v, float d) { return function.backward(v, d); }, at, dy);
    }
  });
}

}  // namespace
}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA
