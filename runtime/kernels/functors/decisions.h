// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include "runtime/kernels/decisions.h"

namespace lockstep::kernels {

// What a step decides: the same code on the CPU and in a kernel.

// A ballot is one vote for each of `parameters`, 1 where its gradient is bad, and behind them as many numbers
// world_size - rank, 0 where no rank's own gradient was bad, and between them where some rank does not know.

/// This rank's vote on a parameter and the number behind it.
struct Vote {
  float bad;
  float number;
};
/// local null: nobody looked.
LOCKSTEP_HOST_DEVICE inline Vote vote(float reduced, const float* local, int rank, int world_size) {
  const bool local_is_bad = local != nullptr && *local != 0.0f;
  Vote vote{reduced != 0.0f || local_is_bad ? 1.0f : 0.0f, local != nullptr ? 0.0f : 0.5f};
  if (local_is_bad) vote.number = static_cast<float>(world_size - rank);
  return vote;
}

/// The verdict where `slot` is the first parameter with a vote against it; `parameters` when there is none.
LOCKSTEP_HOST_DEVICE inline StepVerdict verdict_of(const float* ballot, std::int64_t parameters, std::int64_t slot,
                                                   int world_size) {
  StepVerdict verdict;
  if (slot == parameters) return verdict;
  verdict.found_inf = 1.0f;
  verdict.slot = static_cast<std::int32_t>(slot);
  const float number = ballot[parameters + slot];
  if (number >= 1.0f) {
    verdict.rank = world_size - static_cast<std::int32_t>(number);
  } else if (number > 0.0f) {
    verdict.rank = StepVerdict::kUnknown;
  }
  return verdict;
}

LOCKSTEP_HOST_DEVICE inline StepVerdict count_ballot(const float* ballot, std::int64_t parameters, int world_size) {
  std::int64_t slot = 0;
  while (slot < parameters && ballot[slot] == 0.0f) ++slot;
  return verdict_of(ballot, parameters, slot, world_size);
}

LOCKSTEP_HOST_DEVICE inline void update_loss_scale(const LossScaleOptions& options, bool found_inf,
                                                   LossScaleState& state) {
  state.used = state.scale;
  state.skipped_steps += found_inf ? 1 : 0;
  state.consecutive_skips = found_inf ? state.consecutive_skips + 1 : 0;
  if (!options.dynamic) return;
  const double scale = state.scale;
  if (found_inf) {
    const double smaller = scale * options.backoff_factor;
    state.scale = static_cast<float>(smaller > options.min ? smaller : options.min);
    state.growth_tracker = 0;
  } else if (state.growth_tracker + 1 >= options.growth_interval) {
    const float grown = static_cast<float>(scale * options.growth_factor);
    const float ceiling = static_cast<float>(options.max);
    if (std::isfinite(grown)) state.scale = grown < ceiling ? grown : ceiling;
    state.growth_tracker = 0;
  } else {
    ++state.growth_tracker;
  }
  state.inverse = static_cast<float>(1.0 / static_cast<double>(state.scale));
}

/// rates [count]: by number of applied steps.
LOCKSTEP_HOST_DEVICE inline void advance_schedule(bool found_inf, const float* rates, std::int64_t count,
                                                  ScheduleState& state) {
  state.applied_steps += found_inf ? 0 : 1;
  state.learning_rate = rates[state.applied_steps < count ? state.applied_steps : count - 1];
}

/// What a step adds to a parameter's count of applied steps.
LOCKSTEP_HOST_DEVICE inline std::int64_t advances(bool found_inf, float has_gradient) {
  return !found_inf && has_gradient != 0.0f ? 1 : 0;
}

/// What a gradient is multiplied by, so that the norm of all of them keeps to the limit.
LOCKSTEP_HOST_DEVICE inline float clip_factor(double norm, const NormLimit& limit) {
  const double factor = limit.max / (norm + limit.epsilon);
  return factor < 1.0 ? static_cast<float>(factor) : 1.0f;
}

}  // namespace lockstep::kernels
