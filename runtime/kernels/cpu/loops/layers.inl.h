// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cpu/loops/arena.inl.h"
#include "runtime/kernels/cpu/loops/reductions.inl.h"

// The passes of the steps that need a parameter's norms.

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {
namespace {

double gradient_squares(Input grad, const StepScalars& scalars, std::int64_t total) {
  const UnscaledGradient unscale(scalars);
  Reader block(grad);
  double sum = 0;
  for_each_block(total, [&](std::int64_t begin, std::int64_t n) {
    const float* values = block(begin, n);
    sum += sum_block(n, [values, unscale](std::int64_t i) {
      const double value = static_cast<double>(unscale(values[i]));
      return value * value;
    });
  });
  return sum;
}

float largest_gradient(Input grad, const StepScalars& scalars, std::int64_t total) {
  constexpr std::uint32_t kMagnitude = 0x7fffffffu;
  const UnscaledGradient unscale(scalars);
  Reader block(grad);
  std::uint32_t largest = 0;
  for_each_block(total, [&](std::int64_t begin, std::int64_t n) {
    const float* values = block(begin, n);
    for (std::int64_t i = 0; i < n; ++i) {
      largest = std::max(largest, std::bit_cast<std::uint32_t>(unscale(values[i])) & kMagnitude);
    }
  });
  return std::bit_cast<float>(largest);
}

LayerSquares lamb_moments(const ArenaSlice& slice, const LambRule& rule, const StepScalars& scalars,
                          const ArenaSegment& segment, float* first_moments, float* second_moments, std::int64_t first,
                          std::int64_t total) {
  const Lamb lamb(rule, scalars, segment);
  const float* master = static_cast<const float*>(slice.master.data());
  Reader grad(input(slice.grad));
  alignas(64) float updates[kBlock];
  const auto squares = [](const float* values, std::int64_t n) {
    return sum_block(n, [values](std::int64_t i) {
      const double value = static_cast<double>(values[i]);
      return value * value;
    });
  };
  LayerSquares sums;
  for_each_block(total, [&](std::int64_t offset, std::int64_t n) {
    const std::int64_t begin = first + offset;
    const float* weight = master + begin;
    const float* gradient = grad(begin, n);
    float* m = first_moments + begin;
    float* v = second_moments + begin;
    LOCKSTEP_VECTORIZE for (std::int64_t i = 0; i < n; ++i) {
      lamb.update_moments(weight[i], gradient[i], m[i], v[i]);
      updates[i] = lamb.update(weight[i], m[i], v[i]);
    }
    sums.weight += squares(weight, n);
    sums.other += squares(updates, n);
  });
  return sums;
}

void lamb_weights(const ArenaSlice& slice, const LambRule& rule, const StepScalars& scalars,
                  const ArenaSegment& segment, double trust_ratio, const float* first_moments,
                  const float* second_moments, std::int64_t first, std::int64_t total) {
  const Lamb lamb(rule, scalars, segment, trust_ratio);
  update_weights(slice, first, total, [&](float* master, std::int64_t begin, std::int64_t n) {
    transform_block(n, master, lamb, master, first_moments + begin, second_moments + begin);
  });
}

void novograd_step(const ArenaSlice& slice, const NovogradRule& rule, const StepScalars& scalars,
                   const ArenaSegment& segment, float norm, float* moments, std::int64_t first, std::int64_t total) {
  const Novograd novograd(rule, scalars, segment, norm);
  update_slice(slice, first, total, [&](float* master, const float* grad, std::int64_t begin, std::int64_t n) {
    float* m = moments + begin;
    LOCKSTEP_VECTORIZE for (std::int64_t i = 0; i < n; ++i) master[i] = novograd(master[i], grad[i], m[i]);
  });
}

}  // namespace
}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA
