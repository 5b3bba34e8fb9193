// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/floors.h"

#include <gtest/gtest.h>

#include <cmath>

#include "runtime/kernels/cpu/peak.h"

namespace lockstep::kernels {
namespace {

TEST(Floors, TheShortestRunCountsAndTheFirstDoesNot) {
  int runs = 0;
  const double seconds = shortest_seconds([&] { ++runs; }, kCpu, std::chrono::milliseconds(0));
  EXPECT_EQ(runs, 2);  // one to make ready, one that is timed whatever the limit
  EXPECT_GE(seconds, 0);
}

TEST(Floors, LoopsHaveFiniteSums) {
  for (const cpu::Peak& peak : {cpu::float32_peak(), cpu::bfloat16_peak()}) {
    if (peak.run == nullptr) continue;
    EXPECT_GT(peak.operations, 0);
    // A round makes a sum s of s * 1/2 + 1/2 in float32, and adds at least two products of 1/2 by 1/2 in bfloat16.
    const float sum = peak.run(0.5f);
    EXPECT_TRUE(std::isfinite(sum));
    EXPECT_GT(sum, 0.99f);
  }
}

TEST(Floors, RatesArePositive) {
  EXPECT_GT(product_floor(DType::kBFloat16, kCpu), 0);
  EXPECT_GT(copy_floor(1 << 16, kCpu), 0);
}

}  // namespace
}  // namespace lockstep::kernels
