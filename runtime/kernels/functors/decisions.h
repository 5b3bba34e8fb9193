// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "runtime/kernels/decisions.h"

namespace lockstep::kernels {

// A step's decisions: the CPU and the GPU's kernels run this same code.

// A ballot is one vote for each of `parameters`, 1 where its gradient is bad, and behind them as many numbers
// world_size - rank, 0 where no rank's own gradient was bad, and between them where some rank does not know. Behind
// those are the numbers of the rank's state.

/// This rank's vote on a parameter and the number behind it.
struct Vote {
  float bad;
  float number;
};
/// A null `local`: the rank's own gradient was not checked before the reduction.
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

/// The verdict of a ballot in which `slot` is the first parameter with a vote against it, or `parameters` for none.
LOCKSTEP_HOST_DEVICE inline StepVerdict verdict_of(const float* ballot, std::int64_t parameters, std::int64_t slot,
                                                   int world_size) {
  return slot == parameters ? StepVerdict() : verdict_on(slot, ballot[parameters + slot], world_size);
}

/// Numbers up to here are whole and exact in float32; a rank's complement of one is this minus it.
inline constexpr std::uint32_t kLargestHalf = (1u << 24) - 1;

/// The last mixing step of SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014) on a
/// hash and the next 64 bits: one more bit that differs changes about half of the result's.
LOCKSTEP_HOST_DEVICE constexpr std::uint64_t mixed(std::uint64_t hash, std::uint64_t bits) {
  std::uint64_t z = (hash ^ bits) + 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

LOCKSTEP_HOST_DEVICE inline std::uint64_t mixed(std::uint64_t hash, double value) {
  return mixed(hash, std::bit_cast<std::uint64_t>(value));
}

/// Hashes the values of the state, not the padding between them.
LOCKSTEP_HOST_DEVICE inline std::uint64_t hash_of(const RankState& state) {
  std::uint64_t hash = state.host;
  if (state.rule != nullptr) {
    hash = mixed(hash, (state.rule->dynamic ? std::uint64_t{1} << 32 : 0) |
                           static_cast<std::uint32_t>(state.rule->growth_interval));
    hash = mixed(hash, state.rule->growth_factor);
    hash = mixed(hash, state.rule->backoff_factor);
    hash = mixed(hash, state.rule->min);
    hash = mixed(hash, state.rule->max);
  }
  if (state.scale != nullptr) {
    hash = mixed(hash, static_cast<double>(state.scale->scale));
    hash = mixed(hash, std::uint64_t{static_cast<std::uint32_t>(state.scale->growth_tracker)} << 32 |
                           static_cast<std::uint32_t>(state.scale->consecutive_skips));
    hash = mixed(hash, static_cast<std::uint64_t>(state.scale->skipped_steps));
  }
  if (state.schedule != nullptr) {
    hash = mixed(hash, static_cast<std::uint64_t>(state.schedule->applied_steps));
    hash = mixed(hash, static_cast<double>(state.schedule->learning_rate));
  }
  return hash;
}

/// Number `i` of the kStateNumbers that a ballot has of such a hash.
LOCKSTEP_HOST_DEVICE inline float state_number(std::uint64_t hash, std::int64_t i) {
  const auto half = static_cast<std::uint32_t>(hash >> (i % 2 == 0 ? 0 : 24)) & kLargestHalf;
  return static_cast<float>(i < kStateNumbers / 2 ? half : kLargestHalf - half);
}

/// Whether the ranks' states differ. numbers [kStateNumbers]: the maximum over ranks of each state_number().
LOCKSTEP_HOST_DEVICE inline bool states_differ(const float* numbers) {
  // A sum of two such numbers, of which the larger is above half the limit, may be rounded; a difference is exact.
  const auto limit = static_cast<float>(kLargestHalf);
  return numbers[0] != limit - numbers[2] || numbers[1] != limit - numbers[3];
}

LOCKSTEP_HOST_DEVICE inline StepVerdict verdict_on_different_states() {
  StepVerdict verdict;
  verdict.found_inf = StepVerdict::kNotTaken;
  verdict.rank = StepVerdict::kRanksDiffer;
  return verdict;
}

LOCKSTEP_HOST_DEVICE inline StepVerdict count_ballot(const float* ballot, std::int64_t parameters, int world_size) {
  if (states_differ(ballot + 2 * parameters)) return verdict_on_different_states();
  std::int64_t slot = 0;
  while (slot < parameters && ballot[slot] == 0.0f) ++slot;
  return verdict_of(ballot, parameters, slot, world_size);
}

/// The vote on parameter `i` of the only rank of a world of one; `local` may be null.
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

/// Computed in double, as PyTorch does.
LOCKSTEP_HOST_DEVICE inline float inverse_of_scale(float scale) {
  return static_cast<float>(1.0 / static_cast<double>(scale));
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
  state.inverse = inverse_of_scale(state.scale);
}

LOCKSTEP_HOST_DEVICE inline void set_loss_scale(const LossScaleOptions& options, float scale, LossScaleState& state) {
  if (!(scale > 0.0f) || !std::isfinite(scale)) return;
  const double value = scale;
  const double floored = options.dynamic && value < options.min ? options.min : value;
  state.scale = static_cast<float>(options.dynamic && floored > options.max ? options.max : floored);
  state.inverse = inverse_of_scale(state.scale);
}

/// Counts a step that was taken, and sets the scale, or adapts it where there is no new one. found_inf or new_scale may
/// be null.
LOCKSTEP_HOST_DEVICE inline void move_loss_scale(const LossScaleOptions& options, const float* found_inf,
                                                 const float* new_scale, LossScaleState& state) {
  const bool taken = found_inf != nullptr && *found_inf != StepVerdict::kNotTaken;
  if (taken && new_scale == nullptr) update_loss_scale(options, *found_inf != 0.0f, state);
  if (taken && new_scale != nullptr) count_step(*found_inf != 0.0f, state);
  if (new_scale != nullptr) set_loss_scale(options, *new_scale, state);
}

/// rates [count]: by number of applied steps.
LOCKSTEP_HOST_DEVICE inline void advance_schedule(bool found_inf, const float* rates, std::int64_t count,
                                                  ScheduleState& state) {
  state.applied_steps += found_inf ? 0 : 1;
  state.learning_rate = rates[state.applied_steps < count ? state.applied_steps : count - 1];
}

/// The number, 1 or 0, that a step adds to a parameter's count of applied steps.
LOCKSTEP_HOST_DEVICE inline std::int64_t advances(bool found_inf, float has_gradient) {
  return !found_inf && has_gradient != 0.0f ? 1 : 0;
}

/// The factor of every gradient that keeps the norm of all of them within the limit.
LOCKSTEP_HOST_DEVICE inline float clip_factor(double norm, const NormLimit& limit) {
  const double factor = limit.max / (norm + limit.epsilon);
  return factor < 1.0 ? static_cast<float>(factor) : 1.0f;
}

}  // namespace lockstep::kernels
