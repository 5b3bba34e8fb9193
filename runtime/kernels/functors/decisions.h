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

/// The verdict where `slot` is the first parameter with a vote against it, and `number` stands behind its votes.
LOCKSTEP_HOST_DEVICE inline StepVerdict verdict_on(std::int64_t slot, float number, int world_size) {
  StepVerdict verdict;
  verdict.found_inf = 1.0f;
  verdict.slot = static_cast<std::int32_t>(slot);
  if (number >= 1.0f) {
    verdict.rank = world_size - static_cast<std::int32_t>(number);
  } else if (number > 0.0f) {
    verdict.rank = StepVerdict::kUnknown;
  }
  return verdict;
}

/// The same of a ballot; `slot` is `parameters` where there is no vote against any.
LOCKSTEP_HOST_DEVICE inline StepVerdict verdict_of(const float* ballot, std::int64_t parameters, std::int64_t slot,
                                                   int world_size) {
  return slot == parameters ? StepVerdict() : verdict_on(slot, ballot[parameters + slot], world_size);
}

LOCKSTEP_HOST_DEVICE inline StepVerdict count_ballot(const float* ballot, std::int64_t parameters, int world_size) {
  std::int64_t slot = 0;
  while (slot < parameters && ballot[slot] == 0.0f) ++slot;
  return verdict_of(ballot, parameters, slot, world_size);
}

/// The vote of a rank that is alone on parameter `i`; `local` may be null.
LOCKSTEP_HOST_DEVICE inline Vote vote_alone(const float* reduced, const float* local, std::int64_t i) {
  return vote(reduced[i], local != nullptr ? local + i : nullptr, 0, 1);
}

LOCKSTEP_HOST_DEVICE inline void write_report(const StepReport& report, const LossScaleState& scale) {
  if (report.verdict_out != nullptr) *report.verdict_out = *report.verdict;
  if (report.scale_out != nullptr) *report.scale_out = scale;
  if (report.schedule_out != nullptr) *report.schedule_out = *report.schedule;
  if (report.gradient_norm_out != nullptr) *report.gradient_norm_out = *report.gradient_norm;
}

/// Counts a step that was taken with the scale as it is.
LOCKSTEP_HOST_DEVICE inline void count_step(bool found_inf, LossScaleState& state) {
  state.used = state.scale;
  state.skipped_steps += found_inf ? 1 : 0;
  state.consecutive_skips = found_inf ? state.consecutive_skips + 1 : 0;
}

LOCKSTEP_HOST_DEVICE inline void update_loss_scale(const LossScaleOptions& options, bool found_inf,
                                                   LossScaleState& state) {
  count_step(found_inf, state);
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

LOCKSTEP_HOST_DEVICE inline void set_loss_scale(const LossScaleOptions& options, float scale, LossScaleState& state) {
  if (!(scale > 0.0f) || !std::isfinite(scale)) return;
  const double value = scale;
  const double floored = options.dynamic && value < options.min ? options.min : value;
  state.scale = static_cast<float>(options.dynamic && floored > options.max ? options.max : floored);
  state.inverse = static_cast<float>(1.0 / static_cast<double>(state.scale));
}

/// Either of the two; null where there is no such number.
LOCKSTEP_HOST_DEVICE inline void move_loss_scale(const LossScaleOptions& options, const float* found_inf,
                                                 const float* new_scale, LossScaleState& state) {
  if (new_scale == nullptr) return update_loss_scale(options, *found_inf != 0.0f, state);
  if (found_inf != nullptr) count_step(*found_inf != 0.0f, state);
  set_loss_scale(options, *new_scale, state);
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
