// SPDX-License-Identifier: Apache-2.0
#include "comm/ddp/share.h"

#include <gtest/gtest.h>

#include "comm/ddp/distributed_data_parallel.h"
#include "runtime/base/error.h"
#include "runtime/data/batch.h"

namespace lockstep::comm {
namespace {

// What must not compile: a divisor beside a forward pass that was not told of the step. It moves 7 samples on 2 ranks
// to another update than that of their mean.
template <class Ddp, class Input>
concept GivesADivisor = requires(Ddp& ddp, const Input& input) {
  ddp.forward(input).loss_divisor();
};
template <class Ddp, class Input>
concept GivesAWeight = requires(Ddp& ddp, const Input& input) {
  ddp.forward(input).loss_weight();
};
template <class Ddp>
concept HasADivisorOfItsOwn = requires(Ddp& ddp, const data::Batch& batch) {
  ddp.loss_divisor(batch);
};
template <class Ddp>
concept HasAWeightOfItsOwn = requires(Ddp& ddp, const data::Batch& batch) {
  ddp.loss_weight(batch);
};
template <class Ddp>
concept HasAShareOfItsOwn = requires(Ddp& ddp) {
  ddp.share(std::int64_t{7});
};

static_assert(GivesADivisor<DistributedDataParallel, data::Batch> &&
              GivesAWeight<DistributedDataParallel, data::Batch>);
static_assert(!GivesADivisor<DistributedDataParallel, Tensor> && !GivesAWeight<DistributedDataParallel, Tensor>);
static_assert(!HasADivisorOfItsOwn<DistributedDataParallel> && !HasAWeightOfItsOwn<DistributedDataParallel> &&
              !HasAShareOfItsOwn<DistributedDataParallel>);

TEST(ShareOutput, IsTheTensorAndKnowsItsDivisor) {
  const Tensor y = Tensor::from<float>({1, 2, 3}, {3, 1});
  const ShareOutput output(y, 3, share_of(7, 2, true));
  EXPECT_TRUE(output.is(y));
  EXPECT_EQ(output.loss_divisor(), 4.0);
  EXPECT_EQ(output.loss_weight(), 0.75);
  EXPECT_EQ(output.share().loss_factor, 4.0 / 7);
}

TEST(ShareOutput, OfAStepOfUnknownSizeHasNoDivisor) {
  EXPECT_THROW(ShareOutput(Tensor::zeros({3, 1}, DType::kFloat32), 3, {}).loss_divisor(), UsageError);
}

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
