// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/functors/decisions.h"

#include <cmath>
#include <numeric>
#include <span>

#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/geometry/checks.h"

// A few numbers each, on the calling thread.

namespace lockstep::kernels::cpu {

namespace {

void cast_ballot(const Tensor& reduced, const Tensor& local, int rank, int world_size, const Tensor& ballot) {
  checks::cast_ballot(reduced, local, ballot);
  const auto count = static_cast<std::size_t>(reduced.numel());
  for (std::size_t i = 0; i < count; ++i) {
    const float* mine = local.defined() ? &local.as<float>()[i] : nullptr;
    const Vote own = vote(reduced.as<float>()[i], mine, rank, world_size);
    ballot.mutable_as<float>()[i] = own.bad;
    ballot.mutable_as<float>()[i + count] = own.number;
  }
}

void count_ballot(const Tensor& ballot, int world_size, StepVerdict* verdict) {
  checks::count_ballot(ballot);
  *verdict = kernels::count_ballot(ballot.as<float>().data(), ballot.numel() / 2, world_size);
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

void update_loss_scale(Device, const LossScaleOptions& options, const float* found_inf, LossScaleState* state) {
  kernels::update_loss_scale(options, *found_inf != 0.0f, *state);
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
                           .clip_factor = clip_factor,
                           .update_loss_scale = update_loss_scale,
                           .advance_schedule = advance_schedule};

}  // namespace lockstep::kernels::cpu
