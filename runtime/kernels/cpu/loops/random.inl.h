// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cpu/loops/block.inl.h"
#include "runtime/kernels/cpu/loops/words.inl.h"

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {
namespace {

void random(Distribution distribution, double first_parameter, double second_parameter, const RandomKey& key,
            std::int64_t first, Output out, std::int64_t total) {
  const CounterRng rng = stream_of(key);
  visit_distribution(distribution, first_parameter, second_parameter, [&](auto pair_of) {
    Writer out_block(out);
    alignas(64) std::uint32_t words[kBlock + 8 + 4 * kWords];
    alignas(64) float numbers[kBlock + 8];
    for_each_block(total, [&](std::int64_t begin, std::int64_t n) {
      // Numbers come in groups of four, whose borders are the stream's.
      const std::uint64_t number = static_cast<std::uint64_t>(first + begin);
      const std::int64_t skipped = static_cast<std::int64_t>(number % 4);
      const std::int64_t groups = (n + skipped + 3) / 4;
      random_words(rng, number / 4, groups, words);
      LOCKSTEP_VECTORIZE for (std::int64_t g = 0; g < groups; ++g) {
        const RandomPair lower = pair_of(words[4 * g], words[4 * g + 1]);
        const RandomPair upper = pair_of(words[4 * g + 2], words[4 * g + 3]);
        numbers[4 * g] = lower.first;
        numbers[4 * g + 1] = lower.second;
        numbers[4 * g + 2] = upper.first;
        numbers[4 * g + 3] = upper.second;
      }
      std::copy_n(numbers + skipped, n, out_block(begin, n));
      out_block.commit();
    });
  });
}

}  // namespace
}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA
