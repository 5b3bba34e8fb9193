// SPDX-License-Identifier: Apache-2.0
// 16-bit arithmetic, and a wire whose dtype may be another: more ranks still compute what one rank computes, within the
// rounding of the coarser of the two.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "comm/ddp/digest.h"
#include "tests/comm/ddp/ddp_fixture.h"

namespace lockstep::comm {
namespace {

// Smooth: at the kink of a ReLU, rounding decides between two gradients.
const ConvnetOptions kPrecisionModel{.blocks = {{.channels = 8, .activation = Activation::kGelu, .dropout = 0.1},
                                                {.channels = 8, .stride = 2, .activation = Activation::kGelu}}};
constexpr std::int64_t kPrecisionSamples = 31;

struct PrecisionCase {
  amp::OptLevel level;
  DType compute;
  DType wire;
};

std::vector<PrecisionCase> precision_cases() {
  std::vector<PrecisionCase> all;
  for (const DType wire : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    if (wire != DType::kFloat32) all.push_back({amp::OptLevel::kO0, DType::kFloat32, wire});
    for (const amp::OptLevel level : {amp::OptLevel::kO1, amp::OptLevel::kO2, amp::OptLevel::kO3}) {
      for (const DType compute : {DType::kFloat16, DType::kBFloat16}) all.push_back({level, compute, wire});
    }
  }
  return all;
}

/// The distance of 1 from the next number.
double epsilon(DType dtype) {
  return std::ldexp(1.0, dtype == DType::kBFloat16 ? -7 : dtype == DType::kFloat16 ? -10 : -23);
}

std::string text_of(const PrecisionCase& the_case) {
  constexpr const char* kLevels[] = {"O0", "O1", "O2", "O3"};
  std::string text = kLevels[static_cast<std::size_t>(the_case.level)];
  return text.append(name_of(the_case.compute)).append("_over_").append(name_of(the_case.wire));
}

class Precision : public testing::TestWithParam<PrecisionCase> {};
INSTANTIATE_TEST_SUITE_P(Wires, Precision, testing::ValuesIn(precision_cases()),
                         [](const auto& at) { return text_of(at.param); });

TEST_P(Precision, OfOneRankIsThatOfSeveral) {
  const auto& [level, compute, wire] = GetParam();
  const bool dynamic = compute == DType::kFloat16 && level != amp::OptLevel::kO3;
  const LearnerOptions options{.model = kPrecisionModel,
                               .optimizer = with_sgd({.lr = 0.05, .momentum = 0.9}),
                               .amp = {.opt_level = level, .dtype = compute},
                               .scaler = {.dynamic = dynamic, .init = 1024},
                               .ddp = {.wire_dtype = wire}};
  Learner truth(options, 8, 2);
  Learner mine(options, 8, 2);
  mine.join();
  EXPECT_EQ(mine.arena().grads().dtype(), wire);
  // A gradient is rounded by its layer, to the wire, and as a sum.
  const double tolerance = 4 * std::max(epsilon(compute), epsilon(wire));
  for (std::uint64_t step = 1; step <= 3; ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    const Samples batch = make_samples(kPrecisionSamples, 8, 2, step);
    const double loss = truth.backward(batch, part_of(kPrecisionSamples, 1, 0, 1, Shares::kEven), step);
    const Learner::Part part = part_of(kPrecisionSamples, 1, world().rank(), world().size(), Shares::kGrowing);
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
