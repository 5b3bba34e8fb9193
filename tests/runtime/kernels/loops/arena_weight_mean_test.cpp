// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/arena.h"
#include "tests/runtime/kernels/loops/arena_fixture.h"

namespace lockstep::kernels {
namespace {

using namespace testing;

/// The dtype is that of gradients; weights and their mean are float32.
class WeightMeanLoops : public KernelTest<ArenaSteps> {};
INSTANTIATE_TEST_SUITE_P(On, WeightMeanLoops, kFastTypes, name_of_on);

std::vector<Tensor> means_of(const auto& on, const MeanRule& rule, std::int64_t applied_steps, float found_inf,
                             std::int64_t count) {
  const Tensor weights = on(random_tensor({count}, DType::kFloat32, 1));
  const Tensor mean = on.copy(random_tensor({count}, DType::kFloat32, 2));
  const auto steps = on.value(applied_steps);
  const auto rejected = on.value(found_inf);
  on->mean_step(weights, rule, steps.data(), rejected.data(), mean);
  return {mean};
}

TEST_P(WeightMeanLoops, MeanOfWeightsMatchesTheReference) {
  for (const MeanRule& rule : {MeanRule{.decay = 0.999}, MeanRule{.decay = 0}, MeanRule{.decay = 0.9, .warmup = 10},
                               MeanRule{.decay = 0.9, .warmup = 1}}) {
    for (const std::int64_t steps : {1, 7, 100000}) {
      for (const std::int64_t count : {0, 1, 31, 1700}) {
        expect_matches_reference([&](const Place& on) { return means_of(on, rule, steps, 0, count); },
                                 {.relative = 1e-6, .absolute = 1e-7});
      }
    }
  }
}

TEST_P(WeightMeanLoops, MeanOfWeightsIsTheFormulas) {
  const auto on = tested();
  const auto steps = on.value(std::int64_t{4});
  const auto accepted = on.value(0.0f);
  const Tensor weights = on(tensor_of({8, -8, 3}, {3}, DType::kFloat32));
  const auto mean_by = [&](const MeanRule& rule) {
    const Tensor mean = on.copy(tensor_of({0, 0, 3}, {3}, DType::kFloat32));
    on->mean_step(weights, rule, steps.data(), accepted.data(), mean);
    return mean;
  };
  expect_close(mean_by({.decay = 0.75}), {2, -2, 3}, {});
  // (1 + 4) / (4 + 4), which is less than the decay; then (1 + 4) / (1 + 4), which is more.
  expect_close(mean_by({.decay = 0.75, .warmup = 4}), {3, -3, 3}, {});
  expect_close(mean_by({.decay = 0.75, .warmup = 1}), {2, -2, 3}, {});
}

TEST_P(WeightMeanLoops, SkippedStepAndEqualWeightsLeaveTheMean) {
  const auto on = tested();
  const Tensor before = random_tensor({1700}, DType::kFloat32, 2);
  expect_close(means_of(on, {.decay = 0.5}, 3, 1, 1700)[0], before, {});
  const auto steps = on.value(std::int64_t{3});
  const auto accepted = on.value(0.0f);
  const Tensor mean = on.copy(before);
  on->mean_step(on(before), {.decay = 0.999}, steps.data(), accepted.data(), mean);
  expect_close(mean, before, {});
}

}  // namespace
}  // namespace lockstep::kernels
