// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/skipped_samples.h"

#include <gmock/gmock.h>

#include "runtime/base/error.h"

namespace lockstep::train {
namespace {

TEST(SkippedSamples, AreCountedByRunAndEpoch) {
  SkippedSamples skipped;
  skipped.add(0, 2);
  skipped.add(0, 1);
  EXPECT_EQ(skipped.of_epoch(), 3u);
  skipped.add(1, 1);
  EXPECT_EQ(skipped.of_epoch(), 1u);
  EXPECT_EQ(skipped.of_run(), 4u);
}

TEST(SkippedSamples, GoOnFromACheckpoint) {
  for (const std::uint64_t next_epoch : {3u, 4u}) {
    SkippedSamples before;
    before.add(2, 5);
    before.add(3, 2);
    step::Progress progress{.step = 9, .sampler = {.epoch = next_epoch}};
    before.save(progress);
    SkippedSamples after;
    after.restore(progress);
    after.add(next_epoch, 1);
    EXPECT_EQ(after.of_run(), 8u);
    EXPECT_EQ(after.of_epoch(), next_epoch == 3 ? 3u : 1u) << "the epoch of the next step";
  }
}

TEST(SkippedSamples, MoreThanMayBeEndTheRun) {
  const data::SampleErrors errors{.on_error = data::OnError::kSkip, .max_skipped = 2};
  EXPECT_NO_THROW(require_few(2, errors, "epoch 0"));
  EXPECT_THAT([&] { require_few(3, errors, "epoch 0"); },
              testing::ThrowsMessage<StorageError>(testing::HasSubstr("more than 2 samples of epoch 0")));
  EXPECT_NO_THROW(require_few(3, {}, "epoch 0"));
}

}  // namespace
}  // namespace lockstep::train
