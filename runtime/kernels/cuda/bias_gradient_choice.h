// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "runtime/kernels/cuda/matmul_problem.h"
#include "runtime/kernels/plan_cache/plan_cache.h"
#include "runtime/tensor/device.h"

namespace lockstep::kernels::cuda {

/// Chooses the way to sum the rows of dy, the gradient of a bias: by cuBLASLt beside the product that is the weight's
/// gradient (BGRADB), or by a pass of our own behind it, which leaves the product all algorithms. cuBLASLt does, unless
/// LOCKSTEP_AUTOTUNE=on: then both are timed, and as for algorithms (MatmulChoice) the faster one holds once it is kept
/// in the plan cache. Thread-safe.
class BiasGradientChoice {
 public:
  /// Both ways, appended to the current stream, to memory that may be overwritten.
  struct Ways {
    std::function<bool()> together;  ///< false where cuBLASLt has no algorithm
    std::function<void()> apart;
  };

  /// Throws UsageError for what plan_settings() refuses.
  explicit BiasGradientChoice(Device device);

  /// Whether cuBLASLt is to sum, the same answer for a problem in the whole process. Unless it is known, or the calling
  /// thread's current stream is captured, makes the ways, runs both and waits for them.
  bool together(const MatmulProblem& problem, const std::function<Ways()>& make_ways);

 private:
  bool choose(const MatmulProblem& problem, const std::function<Ways()>& make_ways) const;

  Device device_;
  std::string machine_;             ///< with autotuning: what a choice depends on beside the problem
  std::optional<PlanCache> cache_;  ///< with autotuning
  std::mutex mutex_;
  std::map<MatmulProblem, bool> known_;
};

}  // namespace lockstep::kernels::cuda
