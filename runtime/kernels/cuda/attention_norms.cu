// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/attention_norms.h"
#include "runtime/kernels/cuda/launch.cuh"

namespace lockstep::kernels::cuda {

namespace {

__global__ void __launch_bounds__(kThreads) split(const float* stats, float* norms, std::int64_t count) {
  for (std::int64_t i = first(); i < count; i += step()) {
    norms[2 * i] = stats[i];
    norms[2 * i + 1] = 0.0f;
  }
}

__global__ void __launch_bounds__(kThreads) join(const float* norms, float* stats, std::int64_t count) {
  for (std::int64_t i = first(); i < count; i += step()) stats[i] = norms[2 * i] + norms[2 * i + 1];
}

}  // namespace

void norms_of_stats(const Tensor& stats, const Tensor& norms) {
  const gpu::DeviceGuard guard(stats.device());
  split<<<blocks_for(stats.numel()), kThreads, 0, gpu::current(stats.device())>>>(in<float>(stats), out<float>(norms),
                                                                                  stats.numel());
  check_launch("attention, norms");
}

void stats_of_norms(const Tensor& norms, std::int64_t first_query, const Tensor& stats) {
  const gpu::DeviceGuard guard(stats.device());
  join<<<blocks_for(stats.numel()), kThreads, 0, gpu::current(stats.device())>>>(in<float>(norms) + 2 * first_query,
                                                                                 out<float>(stats), stats.numel());
  check_launch("attention_backward, norms");
}

}  // namespace lockstep::kernels::cuda
