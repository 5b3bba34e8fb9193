// SPDX-License-Identifier: Apache-2.0
// What a step decides on its device is what functors/decisions.h says, which decisions_rules_test.cpp tests.
#include "runtime/kernels/decisions.h"

#include <tuple>
#include <utility>

#include "runtime/kernels/elementwise.h"
#include "tests/runtime/kernels/loops/loops_fixture.h"

namespace lockstep::kernels {
namespace {

using namespace testing;

class DecisionLoops : public KernelTest<Decisions, Elementwise> {};
INSTANTIATE_TEST_SUITE_P(On, DecisionLoops, kDevices, name_of_on);

TEST_P(DecisionLoops, BallotsAreCastAndCounted) {
  for (const std::int64_t parameters : {0, 1, 255, 256, 257, 1000}) {
    for (const std::int64_t first_bad : {std::int64_t{-1}, std::int64_t{0}, parameters / 2, parameters - 1}) {
      if (first_bad >= parameters) continue;
      SCOPED_TRACE(std::to_string(first_bad) + " of " + std::to_string(parameters));
      std::vector<double> bad(static_cast<std::size_t>(parameters));
      if (first_bad >= 0) bad[static_cast<std::size_t>(first_bad)] = bad.back() = 1;
      const Tensor reduced = tensor_of(bad, {parameters}, DType::kFloat32);
      for (const bool seen : {false, true}) {
        expect_matches_reference(
            [&](const Place& on) {
              const Tensor ballot = on.empty({2 * parameters + kStateNumbers});
              const auto rule = on.value(LossScaleOptions{.growth_factor = 3});
              const auto scale = on.value(LossScaleState{.scale = 16, .skipped_steps = 5});
              const auto schedule = on.value(ScheduleState{.applied_steps = 9, .learning_rate = 0.5f});
              on->cast_ballot(on(reduced), seen ? on(reduced) : Tensor(), 2, 5,
                              {.rule = rule.data(), .scale = scale.data(), .schedule = schedule.data(), .host = 7},
                              ballot);
              const auto verdict = on.value(StepVerdict{.found_inf = 7, .slot = 7, .rank = 7});
              on->count_ballot(ballot, 5, verdict.data());
              return std::vector{ballot, verdict.field(&StepVerdict::found_inf), verdict.field(&StepVerdict::slot, 2)};
            },
            {});
      }
    }
  }
}

TEST_P(DecisionLoops, OneRankAloneJudgesAsItsBallotDoes) {
  for (const std::int64_t parameters : {0, 1, 255, 256, 257, 1000}) {
    for (const std::int64_t first_bad : {std::int64_t{-1}, std::int64_t{0}, parameters / 2, parameters - 1}) {
      if (first_bad >= parameters) continue;
      std::vector<double> bad(static_cast<std::size_t>(parameters));
      if (first_bad >= 0) bad[static_cast<std::size_t>(first_bad)] = bad.back() = 1;
      const auto on = tested();
      const Tensor reduced = on(tensor_of(bad, {parameters}, DType::kFloat32));
      const Tensor ballot = on.empty({2 * parameters + kStateNumbers});
      for (const Tensor& local : {Tensor(), reduced}) {
        const auto alone = on.value(StepVerdict{.found_inf = 7, .slot = 7, .rank = 7}),
                   counted = on.value(StepVerdict{});
        on->judge_alone(reduced, local, alone.data());
        on->cast_ballot(reduced, local, 0, 1, {}, ballot);
        on->count_ballot(ballot, 1, counted.data());
        EXPECT_EQ(bytes_of(alone.bytes()), bytes_of(counted.bytes())) << first_bad << " of " << parameters;
      }
    }
  }
}

TEST_P(DecisionLoops, TheReportIsThatOfTheStep) {
  const auto on = tested();
  const auto options = on.value(LossScaleOptions{.growth_interval = 2, .min = 4, .max = 64});
  const auto state = on.value(LossScaleState{.scale = 16, .inverse = 1.0f / 16});
  const auto verdict = on.value(StepVerdict{.found_inf = 1, .slot = 3, .rank = 0});
  const auto schedule = on.value(ScheduleState{.applied_steps = 5, .learning_rate = 0.5f});
  const auto norm = on.value(2.5f), norm_out = on.value(0.0f);
  const auto verdict_out = on.value(StepVerdict{});
  const auto scale_out = on.value(LossScaleState{});
  const auto schedule_out = on.value(ScheduleState{});
  on->update_loss_scale(on.device(), options.data(), &verdict.data()->found_inf, nullptr, state.data(),
                        {.verdict = verdict.data(),
                         .schedule = schedule.data(),
                         .gradient_norm = norm.data(),
                         .verdict_out = verdict_out.data(),
                         .scale_out = scale_out.data(),
                         .schedule_out = schedule_out.data(),
                         .gradient_norm_out = norm_out.data()});
  EXPECT_EQ(verdict_out.read().slot, 3);
  EXPECT_EQ(scale_out.read().scale, 8);
  EXPECT_EQ(schedule_out.read().applied_steps, 5);
  EXPECT_EQ(norm_out.read(), 2.5f);
}

TEST_P(DecisionLoops, TheClippingFactorIsThatOfTheUnscaledNorm) {
  for (const std::int64_t segments : {0, 1, 300}) {
    for (const double clip_norm : {0.5, 1e6}) {
      const Tensor squares = random_tensor({segments}, DType::kFloat64, 1, 0, 100);
      expect_matches_reference(
          [&](const Place& on) {
            const Tensor norm = on.empty({1}), factor = on.empty({1});
            on->clip_factor(on(squares), on.value(0.125f).data(), {.max = clip_norm}, static_cast<float*>(norm.data()),
                            static_cast<float*>(factor.data()));
            return std::vector{norm, factor};
          },
          {.relative = 1e-6});
    }
  }
}

TEST_P(DecisionLoops, TheLossScaleMoves) {
  const auto on = tested();
  const auto options = on.value(LossScaleOptions{.growth_interval = 2, .min = 4, .max = 64});
  const auto state = on.value(LossScaleState{.scale = 16, .inverse = 1.0f / 16});
  for (const auto& [found_inf, scale] : {std::pair{0.0f, 16.0f}, std::pair{0.0f, 32.0f}, std::pair{1.0f, 16.0f},
                                         std::pair{1.0f, 8.0f}, std::pair{1.0f, 4.0f}, std::pair{1.0f, 4.0f}}) {
    on->update_loss_scale(on.device(), options.data(), on.value(found_inf).data(), nullptr, state.data(), {});
    EXPECT_EQ(state.read().scale, scale);
    EXPECT_EQ(state.read().inverse, 1 / scale);
  }
  EXPECT_EQ(state.read().consecutive_skips, 4);
  EXPECT_EQ(state.read().skipped_steps, 4);
}

TEST_P(DecisionLoops, TheLossScaleStaysWhereNoStepIsTaken) {
  const auto on = tested();
  const auto options = on.value(LossScaleOptions{.growth_interval = 2, .min = 4, .max = 64});
  const auto state = on.value(LossScaleState{.scale = 16, .inverse = 1.0f / 16, .growth_tracker = 1});
  const auto not_taken = on.value(StepVerdict::kNotTaken);
  on->update_loss_scale(on.device(), options.data(), not_taken.data(), nullptr, state.data(), {});
  EXPECT_EQ(state.read().scale, 16);
  EXPECT_EQ(state.read().growth_tracker, 1);
  EXPECT_EQ(state.read().skipped_steps, 0);
  EXPECT_EQ(state.read().consecutive_skips, 0);
  on->update_loss_scale(on.device(), options.data(), not_taken.data(), on.value(32.0f).data(), state.data(), {});
  EXPECT_EQ(state.read().scale, 32);
  EXPECT_EQ(state.read().skipped_steps, 0);
}

TEST_P(DecisionLoops, TheLossScaleIsSet) {
  const auto on = tested();
  const auto options = on.value(LossScaleOptions{.growth_interval = 9, .min = 4, .max = 64});
  const auto state = on.value(LossScaleState{.scale = 16, .inverse = 1.0f / 16, .growth_tracker = 3});
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const auto& [asked, scale] :
       {std::pair{48.0f, 48.0f}, std::pair{1.0f, 4.0f}, std::pair{1e9f, 64.0f}, std::pair{-8.0f, 64.0f},
        std::pair{kInfinity, 64.0f}, std::pair{std::nanf(""), 64.0f}}) {
    on->update_loss_scale(on.device(), options.data(), nullptr, on.value(asked).data(), state.data(), {});
    EXPECT_EQ(state.read().scale, scale);
    EXPECT_EQ(state.read().inverse, 1 / scale);
  }
  EXPECT_EQ(state.read().skipped_steps, 0);
  on->update_loss_scale(on.device(), options.data(), on.value(1.0f).data(), on.value(8.0f).data(), state.data(), {});
  EXPECT_EQ(state.read().scale, 8);
  EXPECT_EQ(state.read().used, 64);
  EXPECT_EQ(state.read().skipped_steps, 1);
  EXPECT_EQ(state.read().growth_tracker, 3);
}

TEST_P(DecisionLoops, TheScheduleFollowsTheAppliedSteps) {
  const auto on = tested();
  const Tensor rates = on(Tensor::from<float>({0.1f, 0.2f, 0.3f}, {3}));
  const auto state = on.value(ScheduleState{.learning_rate = 0.1f});
  const Tensor has_gradient = on(Tensor::from<float>({1, 0, 1}, {3}));
  const Tensor steps = on.copy(Tensor::from<std::int64_t>({10, 20, 30}, {3}));
  for (const auto& [found_inf, applied, rate] :
       {std::tuple{0.0f, 1, 0.2f}, std::tuple{1.0f, 1, 0.2f}, std::tuple{0.0f, 2, 0.3f}, std::tuple{0.0f, 3, 0.3f}}) {
    on->advance_schedule(on.value(found_inf).data(), rates, has_gradient, steps, state.data());
    const ScheduleState now = state.read();
    EXPECT_EQ(now.applied_steps, applied);
    expect_close(steps, {10.0 + applied, 20, 30.0 + applied}, {});
    EXPECT_EQ(now.learning_rate, rate);
  }
}

TEST_P(DecisionLoops, ARejectedCopyLeavesTheOutput) {
  for (const DType dtype : {DType::kFloat16, DType::kFloat32}) {
    for (const std::int64_t n : {0, 1, 17, 5000}) {
      const Tensor in = random_tensor({n}, dtype, 1, 0, 100), out = random_tensor({n}, dtype, 2, 0, 100);
      expect_matches_reference(
          [&](const Place& on) {
            const Tensor kept = on.copy(out), replaced = on.copy(out), spoilt = on.copy(out);
            on->copy_unless(on.value(1.0f).data(), on(in), kept);
            on->copy_unless(on.value(0.0f).data(), on(in), replaced);
            on->copy_unless(on.value(std::numeric_limits<float>::quiet_NaN()).data(), on(in), spoilt);
            return std::vector{kept, replaced, spoilt};
          },
          {});
    }
  }
}

}  // namespace
}  // namespace lockstep::kernels
