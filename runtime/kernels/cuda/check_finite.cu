// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/backend.h"
#include "runtime/kernels/cuda/block_sum.cuh"
#include "runtime/kernels/cuda/map.cuh"
#include "runtime/kernels/cuda/segment_tables.h"
#include "runtime/kernels/cuda/tiles.cuh"
#include "runtime/kernels/geometry/checks.h"

namespace lockstep::kernels {

using namespace cuda;

namespace {

/// The sum of squares of each tile, in float64: no sum of squares of finite floats overflows it, so it is not finite
/// exactly where an element is not. sizeof(T) an element.
template <class T>
__global__ void __launch_bounds__(kThreads)
    tile_squares_kernel(const Tile* tiles, bool is_aligned, const T* grad, double* squares) {
  const Tile tile = tiles[blockIdx.x];
  double sum = 0;
  for_each_group<Pack<T>::kSize>(tile, is_aligned, [&]<int W>(std::int64_t at) {
    const Values<T, W> values = load<W>(grad + at);
#pragma unroll
    for (int k = 0; k < W; ++k) {
      const double value = static_cast<double>(to_float(values.values[k]));
      sum += value * value;
    }
  });
  sum = block_sum(sum);
  if (threadIdx.x == 0) squares[blockIdx.x] = sum;
}

/// A block a segment adds up its tiles.
__global__ void __launch_bounds__(kThreads)
    segment_squares_kernel(SegmentTable table, const double* squares, float* flags, double* sum_of_squares) {
  const std::int64_t end = table.first_tile[blockIdx.x + 1];
  double sum = 0;
  for (std::int64_t i = table.first_tile[blockIdx.x] + threadIdx.x; i < end; i += kThreads) sum += squares[i];
  sum = block_sum(sum);
  if (threadIdx.x != 0) return;
  flags[blockIdx.x] = isfinite(sum) ? 0.0f : 1.0f;
  if (sum_of_squares != nullptr) sum_of_squares[blockIdx.x] = sum;
}

}  // namespace

void CudaBackend::check_finite(const Tensor& grad, std::int64_t base, std::span<const ArenaSegment> segments,
                               const Tensor& flags, const Tensor& sum_of_squares) {
  checks::check_finite(grad, base, segments, flags, sum_of_squares);
  if (segments.empty()) return;
  const gpu::DeviceGuard guard(device_);
  const cudaStream_t stream = gpu::current(device_);
  const SegmentTable table = segments_->find(base, segments);
  const Tensor squares = Tensor::empty({table.tile_count}, DType::kFloat64, device_);
  visit_floating("check_finite", grad.dtype(), [&]<class T>() {
    if (table.tile_count == 0) return;
    tile_squares_kernel<<<static_cast<unsigned>(table.tile_count), kThreads, 0, stream>>>(
        table.tiles, aligned(in<T>(grad)), in<T>(grad), out<double>(squares));
    check_launch("check_finite");
  });
  segment_squares_kernel<<<static_cast<unsigned>(table.segment_count), kThreads, 0, stream>>>(
      table, in<double>(squares), out<float>(flags), sum_of_squares.defined() ? out<double>(sum_of_squares) : nullptr);
  check_launch("check_finite");
}

}  // namespace lockstep::kernels
