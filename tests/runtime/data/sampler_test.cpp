// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/sampler.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

#include "runtime/base/error.h"

namespace lockstep::data {
namespace {

std::vector<std::int64_t> copy(const StepPlan& plan) { return {plan.samples.begin(), plan.samples.end()}; }

TEST(Share, CoversTheWholeInOrderWithoutGaps) {
  for (std::int64_t size = 0; size < 40; ++size) {
    for (std::int64_t parts = 1; parts < 12; ++parts) {
      std::int64_t end = 5;
      for (std::int64_t i = 0; i < parts; ++i) {
        const Range part = share({5, 5 + size}, i, parts);
        EXPECT_EQ(part.begin, end);
        EXPECT_TRUE(part.size() == size / parts || part.size() == size / parts + 1);
        end = part.end;
      }
      EXPECT_EQ(end, 5 + size);
    }
  }
}

TEST(Sampler, EachEpochHoldsEverySampleOnceInAnotherOrder) {
  Sampler sampler({.size = 100, .global_batch = 32, .seed = 1});
  EXPECT_EQ(sampler.steps_per_epoch(), 4);
  std::set<std::vector<std::int64_t>> orders;
  for (std::uint64_t epoch = 0; epoch < 5; ++epoch) {
    std::vector<std::int64_t> order;
    for (const std::size_t expected : {32u, 32u, 32u, 4u}) {
      const StepPlan plan = sampler.next();
      EXPECT_EQ(plan.epoch, epoch);
      EXPECT_EQ(plan.samples.size(), expected);
      order.insert(order.end(), plan.samples.begin(), plan.samples.end());
    }
    EXPECT_TRUE(orders.insert(order).second);
    EXPECT_EQ(std::set<std::int64_t>(order.begin(), order.end()).size(), 100u);
  }
}

TEST(Sampler, DropsTheLastSmallBatch) {
  Sampler sampler({.size = 100, .global_batch = 32, .drop_last = true});
  EXPECT_EQ(sampler.steps_per_epoch(), 3);
  for (int step = 0; step < 9; ++step) {
    const StepPlan plan = sampler.next();
    EXPECT_EQ(plan.samples.size(), 32u);
    EXPECT_EQ(plan.epoch, static_cast<std::uint64_t>(step / 3));
  }
}

TEST(Sampler, ABatchLargerThanTheDataSetIsTheWholeEpoch) {
  for (const bool drop_last : {false, true}) {
    Sampler sampler({.size = 3, .global_batch = 32, .drop_last = drop_last});
    EXPECT_EQ(sampler.next().samples.size(), 3u);
    EXPECT_EQ(sampler.next().epoch, 1u);
  }
}

TEST(Sampler, WithoutShufflingKeepsTheDataSetsOrder) {
  Sampler sampler({.size = 5, .global_batch = 3, .shuffle = false});
  EXPECT_THAT(copy(sampler.next()), testing::ElementsAre(0, 1, 2));
  EXPECT_THAT(copy(sampler.next()), testing::ElementsAre(3, 4));
  EXPECT_THAT(copy(sampler.next()), testing::ElementsAre(0, 1, 2));
}

TEST(Sampler, ResumesAtEveryStep) {
  const Sampler::Options options{.size = 23, .global_batch = 5, .seed = 9};
  Sampler whole(options);
  SamplerState state;
  for (int step = 0; step < 20; ++step) {
    Sampler resumed(options, state);
    const StepPlan expected = whole.next();
    const StepPlan plan = resumed.next();
    EXPECT_EQ(copy(plan), copy(expected)) << "step " << step;
    EXPECT_EQ(plan.after, expected.after);
    state = expected.after;
  }
}

TEST(Sampler, OrderFollowsTheSeed) {
  Sampler a({.size = 50, .global_batch = 50, .seed = 1});
  Sampler b({.size = 50, .global_batch = 50, .seed = 2});
  EXPECT_NE(copy(a.next()), copy(b.next()));
}

TEST(Sampler, PermutationsAreEven) {
  std::map<std::vector<std::int64_t>, int> seen;
  Sampler sampler({.size = 4, .global_batch = 4});
  for (int i = 0; i < 24000; ++i) ++seen[copy(sampler.next())];
  EXPECT_EQ(seen.size(), 24u);
  for (const auto& [order, count] : seen) EXPECT_NEAR(count, 1000, 160);
}

TEST(Sampler, RefusesAStateOfAnotherDataSet) {
  EXPECT_THROW(Sampler({.size = 10}, {0, 10}), UsageError);
  EXPECT_THROW(Sampler({.size = 10}, {0, -1}), UsageError);
  EXPECT_THROW(Sampler({.size = 0}), UsageError);
}

TEST(Sampler, RefusesAnEpochThatAnotherSeedOrders) {
  const Sampler::Options options{.size = 10, .global_batch = 5, .seed = 2};
  EXPECT_THROW(Sampler(options, {.cursor = 5, .seed = 1}), UsageError);
  Sampler(options, {.cursor = 5, .seed = 2});
  Sampler(options, {.cursor = 5});                                               // a state that does not know its seed
  Sampler(options, {.epoch = 1, .cursor = 0, .seed = 1});                        // between two epochs
  Sampler({.size = 10, .seed = 2, .shuffle = false}, {.cursor = 5, .seed = 1});  // no seed orders these
}

}  // namespace
}  // namespace lockstep::data
