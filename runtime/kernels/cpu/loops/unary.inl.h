// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cpu/loops/block.inl.h"

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {
namespace {

/// Whether the function's vector code holds for all n numbers.
template <class Function>
bool is_within_limit(const float* x, std::int64_t n) {
  if constexpr (HasLimit<Function>) {
    std::int32_t within = 1;
    for (std::int64_t i = 0; i < n; ++i) within &= std::fabs(x[i]) <= Function::kLimit ? 1 : 0;
    return within != 0;
  }
  return true;
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
    const auto value = [function](float v) { return function.value(v); };
    if constexpr (!HasLimit<Function>) return transform(total, y, value, x);
    Reader x_block(x);
    Writer y_block(y);
    for_each_block(total, [&](std::int64_t begin, std::int64_t n) {
      const float* in = x_block(begin, n);
      float* out = y_block(begin, n);
      if (is_within_limit<Function>(in, n)) {
        transform_block(n, out, value, in);
      } else {
        for (std::int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(function.exact(static_cast<double>(in[i])));
      }
      y_block.commit();
    });
  });
}

void unary_backward(const UnaryFunction& which, Input at, Input dy, Output dx, std::int64_t total) {
  visit_unary(which, [&]<class Function>(Function function) {
    const auto gradient = [function](float v, float d) { return function.backward(v, d); };
    if constexpr (!HasLimit<Function>) return transform(total, dx, gradient, at, dy);
    Reader at_block(at), dy_block(dy);
    Writer dx_block(dx);
    for_each_block(total, [&](std::int64_t begin, std::int64_t n) {
      const float* places = at_block(begin, n);
      const float* gradients = dy_block(begin, n);
      float* out = dx_block(begin, n);
      if (is_within_limit<Function>(places, n)) {
        transform_block(n, out, gradient, places, gradients);
      } else {
        for (std::int64_t i = 0; i < n; ++i) {
          const double slope = function.exact_derivative(static_cast<double>(places[i]));
          out[i] = static_cast<float>(static_cast<double>(gradients[i]) * slope);
        }
      }
      dx_block.commit();
    });
  });
}

}  // namespace
}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA
