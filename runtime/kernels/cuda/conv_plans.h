// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "runtime/kernels/cuda/conv_problem.h"

namespace lockstep::kernels::cuda {

/// cuDNN on one device, with the engines that it chose for the problems it met. Thread-safe.
class ConvPlans {
 public:
  explicit ConvPlans(Device device);
  ~ConvPlans();

  /// Appends the pass to the calling thread's current stream of the device and returns true, or returns false where
  /// cuDNN has no engine for it.
  bool run(const ConvProblem& problem, const ConvData& data);

 private:
  struct State;
  Device device_;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::kernels::cuda
