// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step_bound.h"

#include <gmock/gmock.h>

namespace lockstep::train {
namespace {

using step::StepPart;
using testing::HasSubstr;

/// A step of 10 ms that nothing bounds, of float32 products at 100 GFLOP/s in each dtype.
StepProfile balanced() {
  StepProfile profile{.step = {.mean = 10},
                      .passes = {{.name = "forward", .is_operation = false, .calls = 1, .ms = 3},
                                 {.name = "conv", .calls = 2, .ms = 2, .gflops = 60, .of_floor = 0.6}},
                      .floors = {100, 100, 100, 10, 40},
                      .ranks = {{.step_ms = 10}}};
  profile.parts[static_cast<std::size_t>(StepPart::kForward)].mean = 4;
  profile.parts[static_cast<std::size_t>(StepPart::kBackward)].mean = 5;
  return profile;
}

void set(StepProfile& profile, StepPart part, double ms) { profile.parts[static_cast<std::size_t>(part)].mean = ms; }

void expect(const StepProfile& profile, const std::string& name, const std::string& advice) {
  const StepBound bound = bound_of(profile);
  EXPECT_EQ(bound.name, name);
  EXPECT_THAT(bound.sentence, HasSubstr(advice));
}

TEST(StepBound, NothingStandsOut) { expect(balanced(), "none", "the heaviest operation is conv, 20 % of it"); }

TEST(StepBound, DataThatComeTooLate) {
  StepProfile profile = balanced();
  set(profile, StepPart::kData, 1.9);
  expect(profile, "none", "");
  set(profile, StepPart::kData, 2.1);
  expect(profile, "data", "21 % of the step waits for data: raise data.decode_threads");
}

TEST(StepBound, ARankThatMakesTheOthersWait) {
  StepProfile profile = balanced();
  set(profile, StepPart::kCommunication, 4);
  profile.ranks = {{10, 4}, {10, 0.5}, {10, 4.2}};
  expect(profile, "straggler", "rank 1 makes the others wait: it takes 9.50 ms");
  profile.ranks[1].waited_ms = 3;  // 7 ms beside 6: not 1.3 times
  expect(profile, "communication", "40 % of the step");
}

TEST(StepBound, CommunicationByManyCallsByBytesAndByBoth) {
  StepProfile profile = balanced();
  set(profile, StepPart::kCommunication, 3);
  profile.transport = TransportFloor{"tcp", 100, 1};
  profile.buckets = 20;
  profile.wire_dtype = DType::kFloat16;
  expect(profile, "communication", "fewer, larger buckets: raise comm.bucket_mb");
  profile.buckets = 10;
  expect(profile, "communication", "a larger data.global_batch");
  profile.wire_dtype = DType::kFloat32;
  expect(profile, "communication", "comm.wire_dtype=FP16");
  profile.ranks = {{10, 2}, {10, 1.6}};
  expect(profile, "communication", "most of it waits for other ranks");
}

TEST(StepBound, ProductsInAFasterDTypeOrSmallOnesOrAllThatThereIs) {
  StepProfile profile = balanced();
  profile.passes[1].ms = 5.5;
  expect(profile, "products", "55 % of the step is products, at 60 % of the floor: the processor is the bound");
  profile.passes[1].of_floor = 0.3;
  expect(profile, "products", "too small for the processor: raise data.global_batch; furthest below is conv");
  profile.floors.bfloat16_gflops = 180;
  expect(profile, "products", "bf16 multiplies 1.8 times as fast here: amp.opt_level=O1 amp.dtype=BF16");
  profile.compute_dtype = DType::kBFloat16;
  expect(profile, "products", "too small");
}

TEST(StepBound, OperationsThatAreMostlyCalls) {
  StepProfile profile = balanced();
  profile.passes.push_back({.name = "add", .calls = 500, .ms = 4.1, .gb_per_s = 1});
  expect(profile, "overhead", "41 % of the step is operations shorter than 10 us, mostly their calls");
  profile.passes.back().calls = 400;
  expect(profile, "memory", "41 % of the step is element-wise work");
}

TEST(StepBound, ElementWiseWork) {
  StepProfile profile = balanced();
  profile.passes.push_back({.name = "batch_norm", .calls = 5, .ms = 4.5, .gb_per_s = 8});
  expect(profile, "memory", "halve its bytes with amp.opt_level=O1 amp.dtype=BF16");
  profile.compute_dtype = DType::kFloat16;
  expect(profile, "memory", "smaller micro-batches (train.accumulate)");
}

TEST(StepBound, TheOptimizer) {
  StepProfile profile = balanced();
  set(profile, StepPart::kUpdate, 3.5);
  expect(profile, "optimizer", "35 % of the step is the optimizer's");
}

}  // namespace
}  // namespace lockstep::train
