// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cuda/attention_problem.h"
#include "runtime/kernels/cuda/conv_problem.h"
#include "runtime/tensor/device.h"

namespace lockstep::kernels::cuda {

// In place of cuDNN: it has an engine for no convolution, so that each takes the own kernels, and computes attention on
// the host.

bool run_on_host(const ConvProblem& problem, const ConvData& data);
bool run_on_host(const AttentionProblem& problem, const AttentionData& data);

class Cudnn {
 public:
  explicit Cudnn(Device) {}
  int compute_capability() const { return 90; }
};

template <class Problem, class Data>
class CudnnPlans {
 public:
  explicit CudnnPlans(Cudnn&) {}
  bool run(const Problem& problem, const Data& data) { return run_on_host(problem, data); }
};

}  // namespace lockstep::kernels::cuda
