// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/counter_rng.h"

#include <gtest/gtest.h>

#include <set>

namespace lockstep {
namespace {

using Words = std::array<std::uint32_t, 4>;
using Purpose = CounterRng::Purpose;

TEST(Philox, HasItsPublishedValues) {
  EXPECT_EQ(philox(0, 0, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(~0ull, ~0ull, ~0ull), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  // The digits of pi.
  EXPECT_EQ(philox(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(CounterRng, DrawsAnyElementAlone) {
  const CounterRng rng(42, Purpose::kShuffle, 3, 7);
  for (std::uint64_t i = 0; i < 12; ++i) EXPECT_EQ(rng.at(i), rng.block(i / 4)[i % 4]);
}

TEST(CounterRng, EveryPartOfItsNameGivesOtherNumbers) {
  std::set<std::uint32_t> first;
  for (const CounterRng& rng : {CounterRng(1, Purpose::kDropout), CounterRng(2, Purpose::kDropout),
                                CounterRng(1, Purpose::kInitialization), CounterRng(1, Purpose::kDropout, 1),
                                CounterRng(1, Purpose::kDropout, 0, 1), CounterRng(1, Purpose::kDropout, 0, 0, 1)}) {
    first.insert(rng.at(0));
  }
  EXPECT_EQ(first.size(), 6u);
}

TEST(CounterRng, UniformNumbersLieInTheHalfOpenInterval) {
  EXPECT_EQ(uniform_from_bits(0), 0.0f);
  EXPECT_EQ(uniform_from_bits(0xffffffffu), 1.0f - 0x1p-24f);
}

}  // namespace
}  // namespace lockstep
