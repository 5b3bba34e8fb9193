// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>

#include "runtime/tensor/device.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::kernels {

/// How the loss scale moves; PyTorch's GradScaler with a floor and a ceiling. Lies on the device.
struct LossScaleOptions {
  bool dynamic = true;  ///< false: the scale stays
  double growth_factor = 2.0;
  double backoff_factor = 0.5;
  std::int32_t growth_interval = 2000;
  double min = 0.0;
  double max = 0.0;
};

/// The loss scale and what moves it. Lies on the device.
struct LossScaleState {
  float scale = 1.0f;
  float inverse = 1.0f;  ///< 1 / scale, computed in double
  float used = 0.0f;     ///< the scale of the step last counted
  std::int32_t growth_tracker = 0;
  std::int32_t consecutive_skips = 0;
  std::int64_t skipped_steps = 0;
};

/// The decision on one step, on which all ranks agree. Lies on the device.
struct StepVerdict {
  float found_inf = 0.0f;     ///< 1: the step is skipped; kNotTaken: nor is it counted
  std::int32_t slot = -1;     ///< the first bad parameter in the arena's order; -1: none
  std::int32_t rank = kNone;  ///< the lowest rank whose own gradient of it was bad, or one of these:

  static constexpr std::int32_t kNone = -1;     ///< every rank's own was finite, but the sum over ranks was not
  static constexpr std::int32_t kUnknown = -2;  ///< nobody looked at them before they were reduced
  /// The ranks came with different RankStates, so the step is not taken, whatever the gradients are; `slot` is -1.
  static constexpr std::int32_t kRanksDiffer = -3;
  /// It stays so in a sum of several optimizers' verdicts.
  static constexpr float kNotTaken = std::numeric_limits<float>::infinity();
};

/// How large the norm of all gradients together may be.
struct NormLimit {
  double max;
  double epsilon = 1e-6;  ///< added to the norm by PyTorch's clip_grad_norm_; 0 as in Apex's LAMB
};

/// The optimizer step that comes next: the steps applied before it and its learning rate. Lies on the device.
struct ScheduleState {
  std::int64_t applied_steps = 0;
  float learning_rate = 0.0f;
};

/// The state that must be the same on every rank when a step is decided. Each pointer is to device memory, or null
/// where there is no such state.
struct RankState {
  const LossScaleOptions* rule = nullptr;
  const LossScaleState* scale = nullptr;
  const ScheduleState* schedule = nullptr;
  std::uint64_t host = 0;  ///< a hash of what the host alone knows
};
/// Numbers of a ballot behind those of its parameters, by which the ranks compare their RankStates.
inline constexpr std::int64_t kStateNumbers = 4;

/// The results of a step that the host reads, and the places where they are copied together (..._out). Every pointer is
/// to device memory, or null where there is no such result.
struct StepReport {
  const StepVerdict* verdict = nullptr;
  const ScheduleState* schedule = nullptr;
  const float* gradient_norm = nullptr;
  StepVerdict* verdict_out = nullptr;
  LossScaleState* scale_out = nullptr;  ///< the loss scale after the step
  ScheduleState* schedule_out = nullptr;
  float* gradient_norm_out = nullptr;
};

/// A step's decisions, taken on the device: every pointer is to device memory.
struct Decisions {
  /// This family's functions of the backend for tensors on `device`.
  static const Decisions& on(Device device);

  /// The ballot of this rank: ballot [2 P + kStateNumbers] float32 = for each of P parameters whether reduced or local
  /// (float32 [P], above 0 is bad; local may be undefined) is bad, then world_size - rank where local is, 0 where it is
  /// not, and 0.5 where that is not known; then two halves of a hash of `state`, and their complements. Its maximum
  /// over ranks names for each parameter the lowest rank, and tells whether all states were the same: then the maximum
  /// of a half is the complement of the maximum of its complements.
  void (*cast_ballot)(const Tensor& reduced, const Tensor& local, int rank, int world_size, const RankState& state,
                      const Tensor& ballot);
  /// The verdict of the ballot's maximum over ranks.
  void (*count_ballot)(const Tensor& ballot, int world_size, StepVerdict* verdict);
  /// The verdict of a rank that is alone, from its own ballot.
  void (*judge_alone)(const Tensor& reduced, const Tensor& local, StepVerdict* verdict);
  /// *norm = sqrt(sum of squares) * *inverse_scale (1 where null); *factor = min(1, limit.max / (*norm +
  /// limit.epsilon)). squares: float64 [segments].
  void (*clip_factor)(const Tensor& squares, const float* inverse_scale, const NormLimit& limit, float* norm,
                      float* factor);
  /// Moves the scale after a step: on *found_inf != 0 backs off, else counts and grows at the interval where the
  /// product is finite; counts skips. On StepVerdict::kNotTaken it does none of that. With a *new_scale, the scale
  /// becomes that instead, within min and max where it is dynamic, and the tracker stays; one that is not positive and
  /// finite is ignored. `new_scale` may be null. With a new scale `found_inf` may be null: then no step is counted.
  /// Writes the report last. `device`: the device whose memory the pointers point to.
  void (*update_loss_scale)(Device device, const LossScaleOptions* options, const float* found_inf,
                            const float* new_scale, LossScaleState* state, const StepReport& report);
  /// Counts the step as applied unless *found_inf != 0, and takes the next rate from rates [n] float32, which names one
  /// for each number of applied steps; the last one holds from there on. And counts it in steps [P] int64 for those of
  /// P parameters whose has_gradient [P] float32 is not 0.
  void (*advance_schedule)(const float* found_inf, const Tensor& rates, const Tensor& has_gradient, const Tensor& steps,
                           ScheduleState* state);
};

}  // namespace lockstep::kernels
