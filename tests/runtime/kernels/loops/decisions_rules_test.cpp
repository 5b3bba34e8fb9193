// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "runtime/kernels/decisions.h"
#include "runtime/kernels/functors/decisions.h"
#include "tests/runtime/kernels/tables.h"
#include "tests/runtime/kernels/tensors.h"

namespace lockstep::kernels {
namespace {

using testing::reference_of;
using testing::values_of;

LossScaleState state_of(float scale) { return {.scale = scale, .inverse = 1.0f / scale}; }

TEST(LossScale, GrowsWhenAnIntervalOfStepsWasFinite) {
  const LossScaleOptions options{.growth_interval = 3, .min = 1, .max = 65536};
  LossScaleState state = state_of(1024);
  update_loss_scale(options, false, state);
  update_loss_scale(options, false, state);
  EXPECT_EQ(state.scale, 1024);
  EXPECT_EQ(state.growth_tracker, 2);
  update_loss_scale(options, false, state);
  EXPECT_EQ(state.scale, 2048);
  EXPECT_EQ(state.inverse, 1.0f / 2048);
  EXPECT_EQ(state.growth_tracker, 0);
}

TEST(LossScale, AnOverflowBacksOffAndStartsTheIntervalAnew) {
  const LossScaleOptions options{.growth_interval = 3, .min = 1, .max = 65536};
  LossScaleState state = state_of(1024);
  update_loss_scale(options, false, state);
  update_loss_scale(options, false, state);
  update_loss_scale(options, true, state);
  EXPECT_EQ(state.scale, 512);
  EXPECT_EQ(state.inverse, 1.0f / 512);
  EXPECT_EQ(state.growth_tracker, 0);
}

TEST(LossScale, StaysBetweenFloorAndCeiling) {
  const LossScaleOptions options{.growth_interval = 1, .min = 3, .max = 24};
  LossScaleState state = state_of(4);
  update_loss_scale(options, true, state);
  EXPECT_EQ(state.scale, 3);
  update_loss_scale(options, true, state);
  EXPECT_EQ(state.scale, 3);
  for (const float expected : {6.0f, 12.0f, 24.0f, 24.0f}) {
    update_loss_scale(options, false, state);
    EXPECT_EQ(state.scale, expected);
  }
  EXPECT_EQ(state.inverse, static_cast<float>(1.0 / 24));
}

TEST(LossScale, StaysWhereTheProductIsNotFinite) {
  const LossScaleOptions options{.growth_interval = 1, .min = 0, .max = 3e38};
  LossScaleState state = state_of(0x1p127f);
  update_loss_scale(options, false, state);
  EXPECT_EQ(state.scale, 0x1p127f);
  EXPECT_EQ(state.inverse, 0x1p-127f);
  EXPECT_EQ(state.growth_tracker, 0);
}

TEST(LossScale, CountsSkipsInARowAndInAll) {
  const LossScaleOptions options{.growth_interval = 100, .min = 1, .max = 65536};
  LossScaleState state = state_of(64);
  for (const bool found_inf : {true, true, false, true}) update_loss_scale(options, found_inf, state);
  EXPECT_EQ(state.consecutive_skips, 1);
  EXPECT_EQ(state.skipped_steps, 3);
  EXPECT_EQ(state.scale, 8);
}

TEST(LossScale, AStaticOneCountsSkipsButStays) {
  const LossScaleOptions options{.dynamic = false, .growth_interval = 1, .min = 1, .max = 65536};
  LossScaleState state = state_of(128);
  update_loss_scale(options, true, state);
  update_loss_scale(options, true, state);
  EXPECT_EQ(state.consecutive_skips, 2);
  update_loss_scale(options, false, state);
  EXPECT_EQ(state.scale, 128);
  EXPECT_EQ(state.inverse, 1.0f / 128);
  EXPECT_EQ(state.growth_tracker, 0);
  EXPECT_EQ(state.consecutive_skips, 0);
  EXPECT_EQ(state.skipped_steps, 2);
}

/// The maximum over ranks of their ballots; local[r] are rank r's own flags.
Tensor ballot_of(const std::vector<float>& reduced, const std::vector<std::vector<float>>& local) {
  const auto parameters = static_cast<std::int64_t>(reduced.size());
  const int world_size = static_cast<int>(local.size());
  Tensor all = Tensor::zeros({2 * parameters + kStateNumbers}, DType::kFloat32);
  for (int rank = 0; rank < world_size; ++rank) {
    const Tensor ballot = Tensor::empty(all.shape(), DType::kFloat32);
    reference_of<Decisions>().cast_ballot(Tensor::from(reduced, {parameters}),
                                          Tensor::from(local[static_cast<std::size_t>(rank)], {parameters}), rank,
                                          world_size, {}, ballot);
    for (std::size_t i = 0; i < all.as<float>().size(); ++i) {
      all.mutable_as<float>()[i] = std::max(all.as<float>()[i], ballot.as<float>()[i]);
    }
  }
  return all;
}

StepVerdict verdict_on(const Tensor& ballot, int world_size) {
  return count_ballot(ballot.as<float>().data(), (ballot.numel() - kStateNumbers) / 2, world_size);
}

TEST(Ballot, WithoutABadParameterTheStepIsApplied) {
  const StepVerdict verdict = verdict_on(ballot_of({0, 0}, {{0, 0}, {0, 0}}), 2);
  EXPECT_EQ(verdict.found_inf, 0);
  EXPECT_EQ(verdict.slot, -1);
  EXPECT_EQ(verdict.rank, -1);
}

TEST(Ballot, NamesTheFirstParameterAndTheLowestRankOfIt) {
  // Rank 0 is bad too, but in a later parameter.
  const Tensor ballot = ballot_of({0, 1, 1}, {{0, 0, 1}, {0, 1, 0}, {0, 1, 0}});
  EXPECT_EQ(values_of(ballot.rows(0, 6)), (std::vector<double>{0, 1, 1, 0, 2, 3}));
  const StepVerdict verdict = verdict_on(ballot, 3);
  EXPECT_EQ(verdict.found_inf, 1);
  EXPECT_EQ(verdict.slot, 1);
  EXPECT_EQ(verdict.rank, 1);
}

TEST(Ballot, NamesRankZeroAndTheLastRank) {
  EXPECT_EQ(verdict_on(ballot_of({1}, {{1}, {1}}), 2).rank, 0);
  EXPECT_EQ(verdict_on(ballot_of({1}, {{0}, {1}}), 2).rank, 1);
}

TEST(Ballot, NamesNoRankWhereOnlyTheSumOverflowed) {
  const StepVerdict verdict = verdict_on(ballot_of({0, 1}, {{0, 0}, {0, 0}}), 2);
  EXPECT_EQ(verdict.found_inf, 1);
  EXPECT_EQ(verdict.slot, 1);
  EXPECT_EQ(verdict.rank, -1);
}

TEST(Ballot, SaysWhereSomeRankDidNotLookAtItsOwn) {
  const Tensor reduced = Tensor::from<float>({1}, {1}), fine = Tensor::from<float>({0}, {1});
  const Tensor unknown = Tensor::empty({2 + kStateNumbers}, DType::kFloat32);
  const Tensor known = Tensor::empty(unknown.shape(), DType::kFloat32);
  reference_of<Decisions>().cast_ballot(reduced, {}, 0, 2, {}, unknown);
  reference_of<Decisions>().cast_ballot(reduced, fine, 1, 2, {}, known);
  EXPECT_EQ(verdict_on(unknown, 2).rank, StepVerdict::kUnknown);
  EXPECT_EQ(verdict_on(known, 2).rank, StepVerdict::kNone);
  EXPECT_GT(unknown.as<float>()[1], known.as<float>()[1]) << "one that does not know outweighs one that was fine";
  reference_of<Decisions>().cast_ballot(reduced, reduced, 1, 2, {}, known);
  EXPECT_GT(known.as<float>()[1], unknown.as<float>()[1]) << "and is outweighed by one that was bad";
}

TEST(Ballot, OfARankCountsThoughTheSumIsFinite) {
  // A bad value that a NaN-swallowing maximum or a weight of 0 hid from the sum.
  const StepVerdict verdict = verdict_on(ballot_of({0}, {{0}, {1}}), 2);
  EXPECT_EQ(verdict.found_inf, 1);
  EXPECT_EQ(verdict.rank, 1);
}

TEST(Ballot, OfNoParametersAppliesTheStep) { EXPECT_EQ(verdict_on(ballot_of({}, {{}, {}}), 2).found_inf, 0); }

/// The verdict of two ranks with finite gradients and these states.
StepVerdict verdict_of_states(const RankState& first, const RankState& second) {
  const Tensor fine = Tensor::zeros({1}, DType::kFloat32);
  const Tensor ballot = Tensor::empty({2 + kStateNumbers}, DType::kFloat32);
  const Tensor other = Tensor::empty(ballot.shape(), DType::kFloat32);
  reference_of<Decisions>().cast_ballot(fine, fine, 0, 2, first, ballot);
  reference_of<Decisions>().cast_ballot(fine, fine, 1, 2, second, other);
  for (std::size_t i = 0; i < ballot.as<float>().size(); ++i) {
    ballot.mutable_as<float>()[i] = std::max(ballot.as<float>()[i], other.as<float>()[i]);
  }
  return verdict_on(ballot, 2);
}

TEST(Ballot, TellsWhetherAnyNumberOfTheRanksStatesDiffers) {
  const LossScaleOptions rule{.growth_interval = 7, .min = 1, .max = 4096};
  const LossScaleState scale{.scale = 1024, .inverse = 1.0f / 1024, .growth_tracker = 3, .skipped_steps = 2};
  const ScheduleState schedule{.applied_steps = 40, .learning_rate = 0.1f};
  const RankState state{.rule = &rule, .scale = &scale, .schedule = &schedule, .host = 5};
  // Another address, and what no step depends on.
  LossScaleState copy = scale;
  copy.used = 77;
  EXPECT_EQ(verdict_of_states(state, {.rule = &rule, .scale = &copy, .schedule = &schedule, .host = 5}).found_inf, 0);

  int fields = 0;
  const auto expect_different = [&](const LossScaleOptions& rule_of_other, const LossScaleState& scale_of_other,
                                    const ScheduleState& schedule_of_other, std::uint64_t host) {
    const RankState other{
        .rule = &rule_of_other, .scale = &scale_of_other, .schedule = &schedule_of_other, .host = host};
    for (const StepVerdict& verdict : {verdict_of_states(state, other), verdict_of_states(other, state)}) {
      EXPECT_EQ(verdict.found_inf, StepVerdict::kNotTaken) << "field " << fields;
      EXPECT_EQ(verdict.slot, -1);
      EXPECT_EQ(verdict.rank, StepVerdict::kRanksDiffer);
    }
    ++fields;
  };
  const auto with = [](auto value, const auto& change) {
    change(value);
    return value;
  };
  expect_different(with(rule, [](auto& at) { at.dynamic = false; }), scale, schedule, 5);
  expect_different(with(rule, [](auto& at) { at.growth_factor = 3; }), scale, schedule, 5);
  expect_different(with(rule, [](auto& at) { at.backoff_factor = 0.25; }), scale, schedule, 5);
  expect_different(with(rule, [](auto& at) { at.growth_interval = 8; }), scale, schedule, 5);
  expect_different(with(rule, [](auto& at) { at.min = 2; }), scale, schedule, 5);
  expect_different(with(rule, [](auto& at) { at.max = 8192; }), scale, schedule, 5);
  expect_different(rule, with(scale, [](auto& at) { at.scale = 2048; }), schedule, 5);
  expect_different(rule, with(scale, [](auto& at) { at.growth_tracker = 4; }), schedule, 5);
  expect_different(rule, with(scale, [](auto& at) { at.consecutive_skips = 1; }), schedule, 5);
  expect_different(rule, with(scale, [](auto& at) { at.skipped_steps = 3; }), schedule, 5);
  expect_different(rule, scale, with(schedule, [](auto& at) { at.applied_steps = 41; }), 5);
  expect_different(rule, scale, with(schedule, [](auto& at) { at.learning_rate = 0.2f; }), 5);
  expect_different(rule, scale, schedule, 6);
  EXPECT_EQ(fields, 13);
}

TEST(Ballot, StatesThatDifferWeighMoreThanABadGradient) {
  const Tensor bad = Tensor::from<float>({1}, {1});
  const Tensor ballot = Tensor::empty({2 + kStateNumbers}, DType::kFloat32);
  reference_of<Decisions>().cast_ballot(bad, bad, 0, 2, {.host = 1}, ballot);
  for (const std::size_t number : {2, 3, 4, 5}) ballot.mutable_as<float>()[number] += 1.0f;  // as another rank would
  EXPECT_EQ(verdict_on(ballot, 2).rank, StepVerdict::kRanksDiffer);
}

TEST(ClipFactor, ShrinksToTheNormAndNeverGrows) {
  EXPECT_FLOAT_EQ(clip_factor(4.0, {.max = 1.0}), 0.25f);
  EXPECT_EQ(clip_factor(0.5, {.max = 1.0}), 1.0f);
  EXPECT_EQ(clip_factor(0.0, {.max = 1.0}), 1.0f);
  EXPECT_EQ(clip_factor(std::numeric_limits<double>::infinity(), {.max = 1.0}), 0.0f);
  // Where clip_norm is the norm, PyTorch's epsilon still takes a millionth.
  EXPECT_EQ(clip_factor(1.0, {.max = 1.0}), static_cast<float>(1.0 / 1.000001));
}

TEST(ClipFactor, TakesTheNormOfTheUnscaledGradient) {
  const Tensor squares = Tensor::from<double>({9 * 64.0, 16 * 64.0}, {2});
  const float inverse_scale = 1.0f / 8;
  float norm = 0, factor = 0;
  reference_of<Decisions>().clip_factor(squares, &inverse_scale, {.max = 2.5}, &norm, &factor);
  EXPECT_EQ(norm, 5.0f);
  EXPECT_FLOAT_EQ(factor, 0.5f);
}

TEST(Schedule, FollowsTheAppliedStepsAndStaysAtItsEnd) {
  const std::vector<float> rates{0.1f, 0.2f, 0.3f};
  ScheduleState state{.learning_rate = 0.1f};
  struct Expected {
    bool found_inf;
    std::int64_t applied;
    float rate;
  };
  for (const auto& [found_inf, applied, rate] :
       {Expected{false, 1, 0.2f}, Expected{true, 1, 0.2f}, Expected{false, 2, 0.3f}, Expected{false, 3, 0.3f},
        Expected{false, 4, 0.3f}}) {
    advance_schedule(found_inf, rates.data(), 3, state);
    EXPECT_EQ(state.applied_steps, applied);
    EXPECT_EQ(state.learning_rate, rate);
  }
}

}  // namespace
}  // namespace lockstep::kernels
