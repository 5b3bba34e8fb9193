// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/map.cuh"
#include "runtime/kernels/functors/running_mean.h"
#include "runtime/kernels/geometry/operand_checks.h"

namespace lockstep::kernels::cuda {

namespace {

/// 12 bytes an element; none in a step that is skipped.
template <int W>
__global__ void __launch_bounds__(kThreads)
    mean_step_kernel(std::int64_t n, const float* weights, MeanRule rule, const std::int64_t* applied_steps,
                     const float* found_inf, float* mean) {
  if (*found_inf != 0.0f) return;
  map<W>(n, mean, RunningMean(rule, *applied_steps), mean, weights);
}

}  // namespace

void mean_step(const Tensor& weights, const MeanRule& rule, const std::int64_t* applied_steps, const float* found_inf,
               const Tensor& mean) {
  checks::mean_step(weights, mean);
  const std::int64_t n = mean.numel();
  if (n == 0) return;
  const Device device = mean.device();
  const gpu::DeviceGuard guard(device);
  visit_width(
      [&]<int W>() {
        mean_step_kernel<W><<<blocks_for((n + W - 1) / W), kThreads, 0, gpu::current(device)>>>(
            n, in<float>(weights), rule, applied_steps, found_inf, out<float>(mean));
      },
      in<float>(weights), out<float>(mean));
  check_launch("mean_step");
}

}  // namespace lockstep::kernels::cuda
