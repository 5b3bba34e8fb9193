// SPDX-License-Identifier: Apache-2.0
#include "runtime/nn/running_statistics.h"

#include "runtime/kernels/assign.h"
#include "runtime/kernels/elementwise.h"

namespace lockstep::nn {

RunningStatistics::RunningStatistics(std::int64_t channels)
    : committed_(Tensor::empty({2, channels}, DType::kFloat32)) {
  kernels::fill(committed_.rows(0, 1), 0.0);
  kernels::fill(committed_.rows(1, 2), 1.0);
}

void RunningStatistics::commit(const float* found_inf) {
  if (!has_pending()) return;
  if (found_inf != nullptr) {
    kernels::Elementwise::on(committed_.device()).copy_unless(found_inf, pending_, committed_);
  } else {
    committed_.copy_from(pending_);
  }
  pending_ = {};
}

}  // namespace lockstep::nn
