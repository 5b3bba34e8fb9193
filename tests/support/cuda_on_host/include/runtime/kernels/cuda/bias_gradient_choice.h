// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <mutex>
#include <set>

#include "runtime/kernels/cuda/matmul_problem.h"
#include "runtime/tensor/device.h"
#include "tests/support/emulated_gpu/emulation.h"

namespace lockstep::kernels::cuda {

/// In place of the one that times: it tries both ways, and the product sums, as where nothing is timed.
class BiasGradientChoice {
 public:
  struct Ways {
    std::function<bool()> together;
    std::function<void()> apart;
  };
  explicit BiasGradientChoice(Device) {}
  template <class MakeWays>
  bool together(const MatmulProblem& problem, const MakeWays& make_ways) {
    const std::lock_guard lock(mutex_);
    if (gpu::emulation::recording() || !known_.insert(problem).second) return true;
    const Ways ways = make_ways();
    ways.together();
    ways.apart();
    return true;
  }

 private:
  std::mutex mutex_;
  std::set<MatmulProblem> known_;
};

}  // namespace lockstep::kernels::cuda
