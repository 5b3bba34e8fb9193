// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cpu/loops/block.inl.h"

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {
namespace {

/// The bits of the least float32 that a floating dtype rounds to infinity.
std::uint32_t overflow_bits(DType dtype) {
  if (dtype == DType::kFloat16) return std::bit_cast<std::uint32_t>(65520.0f);
  return dtype == DType::kBFloat16 ? 0x7f7f8000u : 0x7f800000u;
}

bool rescale(Input in, const StepScalars& scalars, Output out, std::int64_t total) {
  constexpr std::uint32_t kMagnitude = 0x7fffffffu;
  const UnscaledGradient unscale(scalars);
  Reader from(in);
  Writer to(out);
  std::uint32_t largest = 0;
  for_each_block(total, [&](std::int64_t begin, std::int64_t n) {
    float* values = to(begin, n);
    transform_block(n, values, unscale, from(begin, n));
    // NaN's bits are above infinity's.
    for (std::int64_t i = 0; i < n; ++i) {
      largest = std::max(largest, std::bit_cast<std::uint32_t>(values[i]) & kMagnitude);
    }
    to.commit();
  });
  return largest < overflow_bits(out.dtype);
}

/// Calls update(master, begin, n) for the blocks of [first, first + total) of the slice and stores the compute copy
/// behind it.
template <class Update>
void update_weights(const ArenaSlice& slice, std::int64_t first, std::int64_t total, Update update) {
  float* master = static_cast<float*>(slice.master.data());
  alignas(64) std::uint16_t rounded[kBlock];
  const Output rounding{rounded, slice.master_precision};
  for_each_block(total, [&](std::int64_t offset, std::int64_t n) {
    const std::int64_t begin = first + offset;
    update(master + begin, begin, n);
    if (is_reduced(slice.master_precision)) {
      narrow(master + begin, n, rounding);
      widen({rounded, slice.master_precision}, n, master + begin);
    }
    if (slice.copy.defined()) narrow(master + begin, n, output(slice.copy).from(begin));
  });
}

/// As update_weights(), but calls update(master, grad, begin, n).
template <class Update>
void update_slice(const ArenaSlice& slice, std::int64_t first, std::int64_t total, Update update) {
  Reader grad(input(slice.grad));
  update_weights(slice, first, total,
                 [&](float* master, std::int64_t begin, std::int64_t n) { update(master, grad(begin, n), begin, n); });
}

/// Steps elements [first, first + total) of the slice. The states begin with the slice's first element.
template <class Element, class... State>
void update_elements(const ArenaSlice& slice, const Element& element, std::int64_t first, std::int64_t total,
                     State*... states) {
  update_slice(
      slice, first, total, [&](float* master, const float* grad, [[maybe_unused]] std::int64_t begin, std::int64_t n) {
        const auto update = [&](auto* const... state) {
          LOCKSTEP_VECTORIZE for (std::int64_t i = 0; i < n; ++i) master[i] = element(master[i], grad[i], state[i]...);
        };
        update(states + begin...);
      });
}

template <class Rule>
void element_step(const ArenaSlice& slice, const Rule& rule, const StepScalars& scalars, const ArenaSegment& segment,
                  float* const* states, std::int64_t first, std::int64_t total) {
  using Element = typename ElementOf<Rule>::Type;
  const Element element(rule, scalars, segment);
  const int count = rule.states();
  if constexpr (takes_states<Rule, 0>()) {
    if (count == 0) return update_elements(slice, element, first, total);
  }
  if constexpr (takes_states<Rule, 1>()) {
    if (count == 1) return update_elements(slice, element, first, total, states[0]);
  }
  if constexpr (takes_states<Rule, 2>()) {
    if (count == 2) return update_elements(slice, element, first, total, states[0], states[1]);
  }
  if constexpr (takes_states<Rule, 3>()) {
    if (count == 3) return update_elements(slice, element, first, total, states[0], states[1], states[2]);
  }
}

template <class... Rules>
constexpr std::tuple<ElementLoop<Rules>...> element_loops(std::type_identity<std::variant<Rules...>>) {
  return {element_step<Rules>...};
}

void mean_step(const float* weights, const RunningMean& running, float* mean, std::int64_t n) {
  transform_block(n, mean, running, mean, weights);
}

}  // namespace
}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA
