// SPDX-License-Identifier: Apache-2.0
// 16-bit arithmetic, and a wire whose dtype may be another: more ranks still compute what one rank computes, within the
// rounding of the coarser of the two.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "comm/ddp/digest.h"
#include "runtime/job/precision.h"
#include "tests/comm/ddp/ddp_fixture.h"

namespace lockstep::comm {
namespace {

// Smooth: at the kink of a ReLU, rounding decides between two gradients.
constexpr const char* kModel =
    "model { convnet { block { channels: 8 activation: GELU dropout: 0.1 } "
    "block { channels: 8 stride: 2 activation: GELU } } } optimizer { sgd { lr: 0.05 momentum: 0.9 } }";
constexpr std::int64_t kSamples = 31;

struct Case {
  job::OptLevel level;
  job::Precision compute;
  job::Precision wire;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const job::Precision wire : {job::FP32, job::FP16, job::BF16}) {
    if (wire != job::FP32) all.push_back({job::O0, job::FP32, wire});
    for (const job::OptLevel level : {job::O1, job::O2, job::O3}) {
      for (const job::Precision compute : {job::FP16, job::BF16}) all.push_back({level, compute, wire});
    }
  }
  return all;
}

/// The distance of 1 from the next number.
double epsilon(job::Precision precision) {
  return std::ldexp(1.0, precision == job::BF16 ? -7 : precision == job::FP16 ? -10 : -23);
}

class Precision : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Wires, Precision, testing::ValuesIn(cases()), [](const auto& at) {
  return job::OptLevel_Name(at.param.level) + job::Precision_Name(at.param.compute) + "Over" +
         job::Precision_Name(at.param.wire);
});

TEST_P(Precision, OfOneRankIsThatOfSeveral) {
  const auto& [level, compute, wire] = GetParam();
  const job::Job job = job_of(std::string(kModel) + " amp { opt_level: " + job::OptLevel_Name(level) +
                              " dtype: " + job::Precision_Name(compute) +
                              " loss_scale { init: 1024 } } comm { wire_dtype: " + job::Precision_Name(wire) + " }");
  Learner truth(job, 8, 2);
  Learner mine(job, 8, 2);
  mine.join();
  EXPECT_EQ(mine.arena().grads().dtype(), job::dtype_of(wire, DType::kFloat64));
  // A gradient is rounded by its layer, to the wire, and as a sum.
  const double tolerance = 4 * std::max(epsilon(compute), epsilon(wire));
  for (std::uint64_t step = 1; step <= 3; ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    const Samples batch = make_samples(kSamples, 8, 2, step);
    const double loss = truth.backward(batch, part_of(kSamples, 1, 0, 1, Shares::kEven), step);
    const Learner::Part part = part_of(kSamples, 1, world().rank(), world().size(), Shares::kGrowing);
    EXPECT_NEAR(sum_over_ranks(mine.backward(batch, part, step)), loss, tolerance * loss);
    for (const nn::Arena::Slot& slot : truth.arena().slots()) {
      const Tensor expected = truth.arena().grads().rows(slot.begin, slot.end);
      const Tensor found = mine.arena().grads().rows(slot.begin, slot.end);
      EXPECT_LE(distance(found, expected), tolerance * norm(expected)) << slot.parameter.name;
    }
    EXPECT_FALSE(truth.step().found_inf);
    EXPECT_FALSE(mine.step().found_inf);
    EXPECT_LE(distance(mine.arena().masters(), truth.arena().masters()), tolerance * norm(truth.arena().masters()));
  }
  require_equal_weights(mine.arena(), mine.optimizer().state(), *world().communicator());
}

}  // namespace
}  // namespace lockstep::comm
