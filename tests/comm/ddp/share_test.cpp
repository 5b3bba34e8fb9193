// SPDX-License-Identifier: Apache-2.0
#include "comm/ddp/share.h"

#include <gtest/gtest.h>

namespace lockstep::comm {
namespace {

TEST(Share, OfEvenSharesIsThatOfTheirMeans) {
  const Share share = share_of(64, 4, true);
  EXPECT_EQ(share.loss_divisor, 16.0);
  EXPECT_EQ(share.gradient_factor, 1.0f);
  EXPECT_EQ(share.loss_factor, 0.25);
}

// What a sample with loss and gradient 1 adds, through a rank's loss, the factors and the reduction, to those of a step
// whose samples are all like that.
TEST(Share, MakesTheMeanOverAllSamplesWhateverTheReductionDivides) {
  for (const std::int64_t samples : {1, 2, 7, 64, 1000}) {
    for (const int ranks : {1, 2, 3, 8}) {
      for (const bool average : {true, false}) {
        const Share share = share_of(samples, ranks, average);
        const double sum = static_cast<double>(samples) / share.loss_divisor;
        const double reduced = sum * static_cast<double>(share.gradient_factor) / (average ? ranks : 1);
        EXPECT_NEAR(reduced, 1.0, 1e-7) << samples << " samples, " << ranks << " ranks";
        EXPECT_NEAR(sum * share.loss_factor, 1.0, 1e-15);
      }
    }
  }
}

TEST(Share, KeepsTheLargestShareWithinAMean) {
  EXPECT_EQ(share_of(64, 3, true).loss_divisor, 22.0);
  EXPECT_EQ(share_of(2, 3, true).loss_divisor, 1.0);
}

}  // namespace
}  // namespace lockstep::comm
