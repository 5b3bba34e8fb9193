// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cpu/loops/lanes.inl.h"

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {
namespace {

/// The words of `groups` blocks of the stream from `first` on, four a block. Writes up to kWords - 1 blocks more.
///
/// philox() on several counters. Their words lie in the low halves of 64-bit numbers, whose upper halves hold anything:
/// so the multiplication, which reads low halves and writes whole numbers, needs no rearranging. The compiler finds
/// that in philox() only at the price of three multiplications.
void random_words(const CounterRng& rng, std::uint64_t first, std::int64_t groups, std::uint32_t* words) {
  for (std::int64_t g = 0; g < groups; g += kWords) {
    Words c0 = count_from(first + static_cast<std::uint64_t>(g));
    Words c1 = c0 >> 32;
    Words c2 = (c0 ^ c0) + rng.high();
    Words c3 = c2 >> 32;
    std::uint32_t k0 = static_cast<std::uint32_t>(rng.key());
    std::uint32_t k1 = static_cast<std::uint32_t>(rng.key() >> 32);
    for (int round = 0; round < Philox::kRounds; ++round) {
      const Words product0 = low_product(c0, Philox::kMultiplier0);
      const Words product1 = low_product(c2, Philox::kMultiplier1);
      c0 = (product1 >> 32) ^ c1 ^ std::uint64_t{k0};
      c2 = (product0 >> 32) ^ c3 ^ std::uint64_t{k1};
      c1 = product1;
      c3 = product0;
      k0 += Philox::kKeyStep0;
      k1 += Philox::kKeyStep1;
    }
    constexpr std::uint64_t kLow = 0xffffffffu;
    store_pairs(words + 4 * g, (c0 & kLow) | (c1 << 32), (c2 & kLow) | (c3 << 32));
  }
}

}  // namespace
}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA
