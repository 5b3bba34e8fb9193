// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step_prediction.h"

#include <gtest/gtest.h>

#include <limits>

namespace lockstep::train {
namespace {

using comm::RankLayout;
using comm::RankLinks;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// On 2 hosts: a million float32 take 1 ms at 32 Gbit/s.
RankLinks links(double gbps, double latency_us = 0) {
  return {.host_gb_per_s = kInfinity, .network_gbps = gbps, .latency_us = latency_us};
}

constexpr RankLayout kTwo{2, 1};

/// Backward ends at 10 of 12 ms.
StepSchedule buckets(std::vector<double> ready_ms, std::int64_t elements = 1'000'000) {
  return {.bucket_ready_ms = ready_ms,
          .reduction_ms = 10,
          .step_ms = 12,
          .bucket_elements = std::vector<std::int64_t>(ready_ms.size(), elements)};
}

constexpr double kMeetings = 1e-3;  // what the ranks say of themselves

TEST(StepPrediction, OneRankTakesItsOwnTime) {
  const PredictedStep step = predict_step(buckets({4, 10}), {}, links(1));
  EXPECT_EQ(step.step_ms, 12);
  EXPECT_EQ(step.exposed_ms, 0);
}

TEST(StepPrediction, AnInfiniteNetworkTakesNothing) {
  const PredictedStep step = predict_step(buckets({10}), kTwo, links(kInfinity));
  EXPECT_DOUBLE_EQ(step.step_ms, 12);
  EXPECT_DOUBLE_EQ(step.exposed_ms, 0);
}

TEST(StepPrediction, ABucketAtTheEndIsExposed) {
  const PredictedStep step = predict_step(buckets({10}), kTwo, links(32));
  EXPECT_NEAR(step.exposed_ms, 1, kMeetings);
  EXPECT_DOUBLE_EQ(step.step_ms, 12 + step.exposed_ms);
}

TEST(StepPrediction, BucketsThatEndBeforeBackwardAreHidden) {
  const PredictedStep step = predict_step(buckets({2, 4, 8}), kTwo, links(32));
  EXPECT_NEAR(step.exposed_ms, 0, kMeetings);
}

TEST(StepPrediction, OnASlowNetworkBucketsQueueFromTheFirstOn) {
  // 10 ms each from the second ms on.
  const PredictedStep step = predict_step(buckets({2, 4, 8}), kTwo, links(3.2));
  EXPECT_NEAR(step.exposed_ms, 2 + 3 * 10 - 10, 10 * kMeetings);
}

TEST(StepPrediction, TheLastBucketWaitsForTheOneBefore) {
  // From 9.5 ms, and again from 10.5 ms on.
  EXPECT_NEAR(predict_step(buckets({9.5, 10}), kTwo, links(32)).exposed_ms, 1.5, kMeetings);
}

TEST(StepPrediction, LanesShareTheLinkAndOverlapTheirLatencies) {
  StepSchedule schedule = buckets({9.5, 9.5});
  // On one lane, each has three latencies of 1 ms and 1 ms of the link; the verdict and the sums follow, three each.
  EXPECT_NEAR(predict_step(schedule, kTwo, links(32, 1000)).exposed_ms, 7.5 + 6, 2 * kMeetings);
  schedule.lanes = 2;
  EXPECT_NEAR(predict_step(schedule, kTwo, links(32, 1000)).exposed_ms, 4.5 + 6, 2 * kMeetings);
}

TEST(StepPrediction, CoresThatReduceDelayTheComputation) {
  // The bucket of 8 ms needs the core for 3 * 2 * 4 MB / (6 GB/s) = 4 of them: half of it.
  RankLinks shared = links(4);
  shared.copy_gb_per_s = 6;
  const PredictedStep early = predict_step(buckets({1}), kTwo, shared);
  EXPECT_NEAR(early.taken_ms, 4, 10 * kMeetings);
  EXPECT_NEAR(early.exposed_ms, 0, 10 * kMeetings);
  EXPECT_DOUBLE_EQ(early.step_ms, 12 + early.taken_ms + early.exposed_ms);
  // Four of its ms pass with two ms of computation; the others follow those.
  const PredictedStep late = predict_step(buckets({8}), kTwo, shared);
  EXPECT_NEAR(late.taken_ms, 2, 10 * kMeetings);
  EXPECT_NEAR(late.exposed_ms, 4, 10 * kMeetings);
}

TEST(StepPrediction, AReductionThatNeedsTheWholeCoreOverlapsWithNothing) {
  RankLinks shared = links(kInfinity);
  shared.copy_gb_per_s = 6;
  for (const double ready : {1.0, 9.0}) {
    EXPECT_NEAR(predict_step(buckets({ready}), kTwo, shared).step_ms, 12 + 4, kMeetings) << ready;
  }
}

TEST(StepPrediction, SynchronisedNormsStopTheRankAndDelayBuckets) {
  StepSchedule schedule = buckets({10});
  schedule.norm_forward_ms = {1, 2};
  schedule.norm_backward_ms = {7};
  EXPECT_NEAR(predict_step(schedule, kTwo, links(32, 100)).exposed_ms, 1 + 3 * 0.3, 2 * kMeetings);
  schedule.norm_numbers = 64;
  // A meeting and one way of the gathering, a meeting and two of the sum.
  EXPECT_NEAR(predict_step(schedule, kTwo, links(32, 100)).exposed_ms, 1 + 3 * 0.3 + 2 * 0.2 + 0.3, 4 * kMeetings);
}

TEST(StepPrediction, NormsOfAGroupOfOneHostDoNotCrossTheNetwork) {
  StepSchedule schedule = buckets({});
  schedule.norm_forward_ms = {1};
  schedule.norm_numbers = 64;
  const RankLayout two_hosts{4, 2};
  const double all = predict_step(schedule, two_hosts, links(32, 1000)).exposed_ms;
  schedule.norm_group = 2;
  EXPECT_NEAR(all - predict_step(schedule, two_hosts, links(32, 1000)).exposed_ms, 3, 2 * kMeetings);
}

TEST(StepPrediction, MoreRanksSlowerLinksAndLongerWaysTakeNoLess) {
  const StepSchedule schedule = buckets({3, 6, 10});
  double last = 0;
  for (const std::int64_t ranks : {1, 2, 4, 8, 64, 1024, 10'000}) {
    const double step = predict_step(schedule, {ranks, 1}, links(10, 20)).step_ms;
    EXPECT_GE(step, last) << ranks;
    last = step;
  }
  last = 0;
  for (const double gbps : {1000.0, 100.0, 10.0, 1.0, 0.1}) {
    const double step = predict_step(schedule, kTwo, links(gbps, 20)).step_ms;
    EXPECT_GE(step, last) << gbps;
    last = step;
  }
  EXPECT_LT(predict_step(schedule, kTwo, links(1, 20)).step_ms, predict_step(schedule, kTwo, links(1, 2000)).step_ms);
}

}  // namespace
}  // namespace lockstep::train
