// SPDX-License-Identifier: Apache-2.0
#pragma once

// The floor of a product's time: as many independent multiply-adds as hide their latency. A file for each family of
// processors.

namespace lockstep::bench {

struct Peak {
  float (*run)(float factor);  ///< null where the processor has no multiply-add of vectors
  double operations;           ///< of a call
};

Peak peak();

constexpr int kPeakRounds = 10000;
constexpr int kPeakSums = 12;

/// keep(sum) makes the compiler leave a sum in its register, and touch it in every round.
template <class Lanes, class Keep>
[[gnu::always_inline]] inline float multiply_add_rounds(float factor, Keep keep) {
  Lanes sums[kPeakSums] = {};
  for (int round = 0; round < kPeakRounds; ++round) {
    for (Lanes& sum : sums) {
      sum = sum * factor + factor;
      keep(sum);
    }
  }
  Lanes total = sums[0];
  for (const Lanes& sum : sums) total += sum;
  return total[0];
}

template <class Lanes>
Peak peak_of(float (*run)(float)) {
  return {run, 2.0 * kPeakRounds * kPeakSums * (sizeof(Lanes) / sizeof(float))};
}

}  // namespace lockstep::bench
