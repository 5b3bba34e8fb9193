// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/functors/decisions.h"

#include <cmath>
#include <numeric>
#include <span>

#include "runtime/kernels/geometry/checks.h"
#include "runtime/kernels/reference/reference_backend.h"

namespace lockstep::kernels {

void ReferenceBackend::cast_ballot(const Tensor& reduced, const Tensor& local, int rank, int world_size,
                                   const Tensor& ballot) {
  checks::cast_ballot(reduced, local, ballot);
  const auto count = static_cast<std::size_t>(reduced.numel());
  for (std::size_t i = 0; i < count; ++i) {
    const float* mine = local.defined() ? &local.as<float>()[i] : nullptr;
    const Vote own = vote(reduced.as<float>()[i], mine, rank, world_size);
    ballot.mutable_as<float>()[i] = own.bad;
    ballot.mutable_as<float>()[i + count] = own.number;
  }
}

void ReferenceBackend::count_ballot(const Tensor& ballot, int world_size, StepVerdict* verdict) {
  checks::count_ballot(ballot);
  *verdict = lockstep::count_ballot(ballot.as<float>().data(), ballot.numel() / 2, world_size);
}

void ReferenceBackend::clip_factor(const Tensor& squares, const float* inverse_scale, double clip_norm, float* norm,
                                   float* factor) {
  checks::clip_factor(squares);
  const auto sums = squares.as<double>();
  const double value = std::sqrt(std::accumulate(sums.begin(), sums.end(), 0.0)) *
                       (inverse_scale != nullptr ? static_cast<double>(*inverse_scale) : 1.0);
  *norm = static_cast<float>(value);
  *factor = lockstep::clip_factor(value, clip_norm);
}

void ReferenceBackend::update_loss_scale(const LossScaleOptions& options, const float* found_inf,
                                         LossScaleState* state) {
  lockstep::update_loss_scale(options, *found_inf != 0.0f, *state);
}

void ReferenceBackend::advance_schedule(const float* found_inf, const Tensor& rates, const Tensor& has_gradient,
                                        const Tensor& steps, ScheduleState* state) {
  checks::advance_schedule(rates, has_gradient, steps);
  lockstep::advance_schedule(*found_inf != 0.0f, rates.as<float>().data(), rates.numel(), *state);
  const std::span<std::int64_t> counts = steps.mutable_as<std::int64_t>();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    counts[i] += advances(*found_inf != 0.0f, has_gradient.as<float>()[i]);
  }
}

}  // namespace lockstep::kernels
