// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/attention_norms.h"
#include "runtime/kernels/cuda/attention_operands.cuh"

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

template <class T>
__global__ void __launch_bounds__(kThreads)
    multiply_rows(AllHeads<const T> out, AllHeads<const T> dout, float* delta, std::int64_t rows, Lanes team) {
  for_each_row(team, rows, [&](std::int64_t row, bool live) {
    const HeadRows<const T> left = out.of_head(row / out.count), right = dout.of_head(row / out.count);
    float sum = 0;
    for (std::int64_t c = team.rank(); live && c < out.channels; c += team.size) {
      sum += to_float(*left.at(row % out.count, c)) * to_float(*right.at(row % out.count, c));
    }
    sum = team.sum(sum);
    if (live && team.rank() == 0) delta[row] = sum;
  });
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

Tensor attention_deltas(const Heads& result, const Heads& dout) {
  const Tensor delta =
      Tensor::empty({result.size(0), result.size(1), result.size(2)}, DType::kFloat32, result.device());
  if (delta.numel() == 0) return delta;
  const gpu::DeviceGuard guard(delta.device());
  visit_floating("attention_backward", dout.dtype(), [&]<class T>() {
    multiply_rows<T><<<blocks_for(delta.numel(), kThreads / 32), kThreads, 0, gpu::current(delta.device())>>>(
        read_heads<T>(result), read_heads<T>(dout), out<float>(delta), delta.numel(), Lanes{32});
    check_launch("attention_backward, sums of out and dout");
  });
  return delta;
}

}  // namespace lockstep::kernels::cuda
