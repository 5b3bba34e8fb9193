// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/functors/decisions.h"

#include <cmath>
#include <numeric>
#include <span>

#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/geometry/operand_checks.h"

// Each kernel handles only a few numbers, so it runs on the calling thread.

namespace lockstep::kernels::cpu {

namespace {

void cast_ballot(const Tensor& reduced, const Tensor& local, int rank, int world_size, const RankState& state,
                 const Tensor& ballot) {
  checks::cast_ballot(reduced, local, ballot);
  const auto count = static_cast<std::size_t>(reduced.numel());
  const std::span<float> numbers = ballot.mutable_as<float>();
  for (std::size_t i = 0; i < count; ++i) {
    const float* mine = local.defined() ? &local.as<float>()[i] : nullptr;
    const Vote own = vote(reduced.as<float>()[i], mine, rank, world_size);
    numbers[i] = own.bad;
    numbers[i + count] = own.number;
  }
  const std::uint64_t hash = hash_of(state);
  for (std::int64_t i = 0; i < kStateNumbers; ++i) {
    numbers[2 * count + static_cast<std::size_t>(i)] = state_number(hash, i);
  }
}

void count_ballot(const Tensor& ballot, int world_size, StepVerdict* verdict) {
  checks::count_ballot(ballot);
  *verdict = kernels::count_ballot(ballot.as<float>().data(), (ballot.numel() - kStateNumbers) / 2, world_size);
}

void judge_alone(const Tensor& reduced, const Tensor& local, StepVerdict* verdict) {
  checks::judge_alone(reduced, local);
  const float* const flags = reduced.as<float>().data();
  const float* const own = local.defined() ? local.as<float>().data() : nullptr;
  *verdict = {};
  for (std::int64_t i = 0; i < reduced.numel(); ++i) {
    const Vote vote = vote_alone(flags, own, i);
    if (vote.bad == 0.0f) continue;
    *verdict = verdict_on(i, vote.number, 1);
    return;
  }
}

void clip_factor(const Tensor& squares, const float* inverse_scale, const NormLimit& limit, float* norm,
                 float* factor) {
  checks::clip_factor(squares);
  const auto sums = squares.as<double>();
  const double value = std::sqrt(std::accumulate(sums.begin(), sums.end(), 0.0)) *
                       (inverse_scale != nullptr ? static_cast<double>(*inverse_scale) : 1.0);
  *norm = static_cast<float>(value);
  *factor = kernels::clip_factor(value, limit);
}

void update_loss_scale(Device, const LossScaleOptions* options, const float* found_inf, const float* new_scale,
                       LossScaleState* state, const StepReport& report) {
  move_loss_scale(*options, found_inf, new_scale, *state);
  write_report(report, *state);
}

void advance_schedule(const float* found_inf, const Tensor& rates, const Tensor& has_gradient, const Tensor& steps,
                      ScheduleState* state) {
  checks::advance_schedule(rates, has_gradient, steps);
  kernels::advance_schedule(*found_inf != 0.0f, rates.as<float>().data(), rates.numel(), *state);
  const std::span<std::int64_t> counts = steps.mutable_as<std::int64_t>();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    counts[i] += advances(*found_inf != 0.0f, has_gradient.as<float>()[i]);
  }
}

}  // namespace

const Decisions kDecisions{.cast_ballot = cast_ballot,
                           .count_ballot = count_ballot,
                           .judge_alone = judge_alone,
                           .clip_factor = clip_factor,
                           .update_loss_scale = update_loss_scale,
                           .advance_schedule = advance_schedule};

}  // namespace lockstep::kernels::cpu
