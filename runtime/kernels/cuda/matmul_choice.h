// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cublasLt.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/kernels/cuda/matmul_problem.h"
#include "runtime/kernels/plan_cache/plan_cache.h"
#include "runtime/tensor/device.h"

namespace lockstep::kernels::cuda {

/// Chooses cuBLASLt's algorithm for a product with LOCKSTEP_AUTOTUNE=on: the fastest when timed. As for convolutions,
/// timing is chance, so a choice holds only once it is kept in the plan cache, where the first one stays.
/// Where nothing can be kept, and where a product first comes while it is captured, cuBLASLt's ranking holds.
class MatmulChoice {
 public:
  /// The actions of MatmulPlans on an algorithm. cuBLASLt gives with each algorithm the workspace that it needs.
  struct Actions {
    /// The algorithm as cuBLASLt runs it for this problem; nothing where it does not.
    std::function<std::optional<cublasLtMatmulHeuristicResult_t>(const cublasLtMatmulAlgo_t&)> check;
    /// Appends the product to the current stream, to memory that may be overwritten. False where it is refused.
    std::function<bool(const cublasLtMatmulHeuristicResult_t&)> run;
  };

  /// `folder` is that of the plan settings.
  MatmulChoice(Device device, const std::string& folder);

  /// Puts the choice before the other algorithms, which keep cuBLASLt's order. Unless it is known, or the calling
  /// thread's current stream is captured, runs every algorithm and waits for it.
  void order(const MatmulProblem& problem, const Actions& actions,
             std::vector<cublasLtMatmulHeuristicResult_t>& ranked) const;

 private:
  Device device_;
  std::string machine_;  ///< plan_machine()
  PlanCache cache_;
};

}  // namespace lockstep::kernels::cuda
