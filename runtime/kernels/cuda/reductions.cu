// SPDX-License-Identifier: Apache-2.0
// Sums in two stages: blocks write what they found into a workspace, and a second kernel adds that up in its order. How
// the work is cut depends on the shape and the alignment alone, so a sum has the same bits in every run and on every
// device.
#include "runtime/kernels/cuda/block_sum.cuh"
#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/cuda/map.cuh"
#include "runtime/kernels/geometry/operand_checks.h"
#include "runtime/kernels/reductions.h"

namespace lockstep::kernels::cuda {

namespace {

constexpr std::int64_t kBlocks = 1024;

/// Sums of a group in float32 (float64: in itself), of groups in float64. sizeof(T) an element.
template <int W, class T>
__global__ void __launch_bounds__(kThreads) sum_kernel(std::int64_t n, const T* x, double* partial) {
  double sum = 0;
#pragma unroll 4
  for (std::int64_t i = first() * W; i <= n - W; i += step() * W) {
    const Values<T, W> values = load<W>(x + i);
    Widened<T> of_group = 0;
#pragma unroll
    for (int k = 0; k < W; ++k) of_group += widened(values.values[k]);
    sum += static_cast<double>(of_group);
  }
  const std::int64_t rest = n / W * W + first();
  if (W > 1 && rest < n) sum += static_cast<double>(widened(x[rest]));
  sum = block_sum(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

template <class Out>
__global__ void __launch_bounds__(kThreads)
    finish_sum_kernel(std::int64_t n, const double* partial, double factor, Out* out) {
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < n; i += kThreads) sum += partial[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *out = narrowed<Out>(factor * sum);
}

/// How [rows, channels] is cut: a block is `lanes` threads wide, each with W neighbouring channels, and kThreads /
/// lanes rows high; it adds up one chunk of the rows.
struct RowChunks {
  std::int64_t rows;
  std::int64_t channels;
  std::int64_t chunk_rows;
  int lanes;

  dim3 grid(int width) const {
    const std::int64_t chunks = std::max<std::int64_t>((rows + chunk_rows - 1) / chunk_rows, 1);
    return {static_cast<unsigned>((channels + lanes * width - 1) / (lanes * width)), static_cast<unsigned>(chunks)};
  }
};

RowChunks cut(std::int64_t rows, std::int64_t channels, int width, bool into_one_chunk) {
  int lanes = 1;
  while (lanes < kWarp && lanes * width < channels) lanes *= 2;
  const std::int64_t high = kThreads / lanes;
  const std::int64_t columns = (channels + lanes * width - 1) / (lanes * width);
  // Chunks worth a block's while: eight rows a thread or more.
  const std::int64_t chunks =
      into_one_chunk ? 1 : std::clamp<std::int64_t>(rows / (8 * high), 1, std::max<std::int64_t>(kBlocks / columns, 1));
  return {rows, channels, std::max<std::int64_t>((rows + chunks - 1) / chunks, 1), lanes};
}

/// out [chunks, channels], or out [channels] += where there is one chunk. sizeof(T) an element.
template <int W, class T, class Out>
__global__ void __launch_bounds__(kThreads) sum_rows_kernel(RowChunks cut, const T* x, bool accumulate, Out* out) {
  __shared__ float shared[W][kThreads];
  const int lane = static_cast<int>(threadIdx.x) % cut.lanes;
  const int high = kThreads / cut.lanes;
  const std::int64_t channel = (static_cast<std::int64_t>(blockIdx.x) * cut.lanes + lane) * W;
  const std::int64_t begin = blockIdx.y * cut.chunk_rows;
  const std::int64_t end = min(begin + cut.chunk_rows, cut.rows);
  float sums[W] = {};
  if (channel < cut.channels) {
#pragma unroll 4
    for (std::int64_t row = begin + threadIdx.x / cut.lanes; row < end; row += high) {
      const Values<T, W> values = load<W>(x + row * cut.channels + channel);
#pragma unroll
      for (int k = 0; k < W; ++k) sums[k] += to_float(values.values[k]);
    }
  }
#pragma unroll
  for (int k = 0; k < W; ++k) shared[k][threadIdx.x] = sums[k];
  for (int distance = kThreads / 2; distance >= cut.lanes; distance /= 2) {
    __syncthreads();
    if (threadIdx.x >= distance) continue;
#pragma unroll
    for (int k = 0; k < W; ++k) shared[k][threadIdx.x] += shared[k][threadIdx.x + distance];
  }
  if (threadIdx.x >= cut.lanes || channel >= cut.channels) return;
  Out* const to = out + blockIdx.y * cut.channels + channel;
#pragma unroll
  for (int k = 0; k < W; ++k) {
    const float sum = shared[k][lane];
    to[k] = from_float<Out>(accumulate ? to_float(to[k]) + sum : sum);
  }
}

void sum(const Tensor& x, double factor, const Tensor& out) {
  checks::sum(x, out);
  const Device device = out.device();
  const gpu::DeviceGuard guard(device);
  const cudaStream_t stream = gpu::current(device);
  const std::int64_t n = x.numel();
  visit_countable("sum", x.dtype(), [&]<class T>() {
    const auto blocks =
        static_cast<unsigned>(std::min<std::int64_t>(blocks_for((n + Pack<T>::kSize - 1) / Pack<T>::kSize), kBlocks));
    const Tensor partial = Tensor::empty({static_cast<std::int64_t>(blocks)}, DType::kFloat64, device);
    const auto launch = [&]<int W>() {
      sum_kernel<W><<<blocks, kThreads, 0, stream>>>(n, in<T>(x), cuda::out<double>(partial));
    };
    visit_width(launch, in<T>(x));
    check_launch("sum");
    visit_countable("sum", out.dtype(), [&]<class Out>() {
      finish_sum_kernel<<<1, kThreads, 0, stream>>>(partial.numel(), in<double>(partial), factor, cuda::out<Out>(out));
      check_launch("sum");
    });
  });
}

void sum_rows(const Tensor& x, bool accumulate, const Tensor& out) {
  checks::sum_rows(x, out);
  const std::int64_t channels = out.numel();
  if (channels == 0) return;
  const Device device = out.device();
  const gpu::DeviceGuard guard(device);
  const cudaStream_t stream = gpu::current(device);
  Tensor partial;
  const auto launch = [&]<class T, int W>() {
    const RowChunks chunks = cut(x.shape().rows(), channels, W, false);
    const dim3 grid = chunks.grid(W);
    partial = Tensor::empty({static_cast<std::int64_t>(grid.y), channels}, DType::kFloat32, device);
    sum_rows_kernel<W><<<grid, kThreads, 0, stream>>>(chunks, in<T>(x), false, cuda::out<float>(partial));
  };
  visit_channels("sum_rows", x.dtype(), channels, launch, x.data());
  check_launch("sum_rows");
  visit_floating("sum_rows", out.dtype(), [&]<class Out>() {
    const RowChunks chunks = cut(partial.size(0), channels, 1, true);
    sum_rows_kernel<1>
        <<<chunks.grid(1), kThreads, 0, stream>>>(chunks, in<float>(partial), accumulate, cuda::out<Out>(out));
    check_launch("sum_rows");
  });
}

}  // namespace

const Reductions kReductions{.sum = sum, .sum_rows = sum_rows};

}  // namespace lockstep::kernels::cuda
