// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cudnn.h>

#include <memory>
#include <optional>
#include <string>

#include "runtime/kernels/cuda/cudnn_plan.h"
#include "runtime/kernels/plan_cache/plan_cache.h"

namespace lockstep::kernels::cuda {

/// Chooses cuDNN's engine for a problem. Engines round differently, so the choice may depend on nothing that differs
/// between two equal runs:
///
/// - The rule is cuDNN's ranking, a function of problem, device and version. The plan cache spares asking again, which
///   takes 1 to 30 ms a problem; to build an engine by its name takes a fraction of one.
/// - With LOCKSTEP_AUTOTUNE=on it is the fastest engine when timed. Timing is chance, so a choice holds only once it is
///   kept in the plan cache, where the first one stays: whoever asks later, in this run or the next, gets that one. It
///   is kept apart from ranked ones, which others still get. Where nothing can be kept, the ranking holds.
///
/// Within a process a choice never changes. Ranks need not agree: only sums over ranks must have the same bits on each.
class EngineChoice {
 public:
  /// Throws UsageError for what plan_settings() refuses.
  explicit EngineChoice(Device device);

  /// Null where cuDNN has no engine. With autotuning runs every candidate on `addresses`, whose results each
  /// overwrites, on the handle's stream, the calling thread's current one of the device, and waits for them; not while
  /// it is captured.
  std::unique_ptr<CudnnPlan> choose(cudnnHandle_t handle, const CudnnProblem& problem,
                                    const CudnnAddresses& addresses) const;

 private:
  EngineChoice(Device device, const PlanSettings& settings);
  /// The engine that the cache keeps for `key`; null, and a line in the log, where it does not compute the problem
  /// here.
  std::unique_ptr<CudnnPlan> named(cudnnHandle_t handle, const CudnnProblem& problem, const std::string& key,
                                   const std::optional<std::string>& name) const;
  std::unique_ptr<CudnnPlan> timed(cudnnHandle_t handle, const CudnnProblem& problem,
                                   const CudnnAddresses& addresses) const;

  Device device_;
  bool autotune_;
  std::string machine_;  ///< plan_machine()
  PlanCache cache_;
};

}  // namespace lockstep::kernels::cuda
