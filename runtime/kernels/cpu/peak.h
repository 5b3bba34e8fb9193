// SPDX-License-Identifier: Apache-2.0
#pragma once

// The floor of a product's time on one thread: as many independent multiply-adds as hide their latency. Each family of
// processors has a file: x86/, arm/, or other/ for all others.

#include <cstddef>
#include <utility>

namespace lockstep::kernels::cpu {

struct Peak {
  float (*run)(float factor);  ///< null where the processor has no such instruction
  double operations;           ///< multiplications and additions of a call
};

/// Vectors of float32, the widest that the processor has.
Peak float32_peak();
/// Products of bfloat16 that add up in float32, by tiles where oneDNN uses them, else by vectors.
Peak bfloat16_peak();

constexpr int kPeakRounds = 10000;
constexpr int kPeakSums = 12;

/// keep(sum) makes the compiler leave a sum in its register, and touch it in every round. The sums are named one by
/// one: in a loop over them GCC would keep them in memory.
template <class Lanes, class Keep, std::size_t... kAt>
[[gnu::always_inline]] inline float multiply_add_rounds(float factor, Keep keep, std::index_sequence<kAt...>) {
  Lanes sums[sizeof...(kAt)] = {};
  for (int round = 0; round < kPeakRounds; ++round) {
    ((sums[kAt] = sums[kAt] * factor + factor, keep(sums[kAt])), ...);
  }
  return (sums[kAt][0] + ...);
}
template <class Lanes, class Keep>
[[gnu::always_inline]] inline float multiply_add_rounds(float factor, Keep keep) {
  return multiply_add_rounds<Lanes>(factor, keep, std::make_index_sequence<kPeakSums>());
}

template <class Lanes>
Peak peak_of(float (*run)(float)) {
  return {run, 2.0 * kPeakRounds * kPeakSums * (sizeof(Lanes) / sizeof(float))};
}

}  // namespace lockstep::kernels::cpu
