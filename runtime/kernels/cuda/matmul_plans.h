// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "runtime/kernels/cuda/matmul_problem.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::kernels::cuda {

struct MatmulData {
  const void* a = nullptr;
  const void* b = nullptr;
  const void* bias = nullptr;
  void* out = nullptr;
  void* bias_gradient = nullptr;  ///< [m], of the result's dtype and 16-byte aligned; written
  bool accumulate = false;
};

/// cuBLASLt on one device, with the algorithms that it chose for the problems it met: several each, the next where one
/// is refused when it is to run. With LOCKSTEP_AUTOTUNE=on the fastest when timed comes first (MatmulChoice).
/// Thread-safe.
class MatmulPlans {
 public:
  /// Throws UsageError for what plan_settings() refuses.
  explicit MatmulPlans(Device device);
  ~MatmulPlans();

  /// Appends the product to the calling thread's current stream of the device and returns true, or returns false where
  /// cuBLASLt has no algorithm for it that runs. A problem that is new is timed first, and waited for, where that is
  /// asked for and the stream is not captured. Throws ShapeError for other dtypes than float32, float16 and bfloat16,
  /// and EnvironmentError for what fails without being refused, such as an error of earlier work that shows only now.
  bool run(const MatmulProblem& problem, const MatmulData& data);

 private:
  struct State;
  Device device_;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::kernels::cuda
