// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "runtime/kernels/cuda/block_sum.cuh"
#include "runtime/kernels/cuda/device_state.h"
#include "runtime/kernels/cuda/map.cuh"
#include "runtime/kernels/cuda/segment_tables.h"
#include "runtime/kernels/cuda/tiles.cuh"
#include "runtime/kernels/functors/optimizer.h"
#include "runtime/kernels/geometry/operand_checks.h"

namespace lockstep::kernels::cuda {

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

/// Rescales the tiles' elements; what it writes of each is 0, or infinity where an element of out is not finite.
/// sizeof(In) + sizeof(Out) an element.
template <class In, class Out>
__global__ void __launch_bounds__(kThreads) tile_rescale_kernel(const Tile* tiles, bool is_aligned, StepScalars scalars,
                                                                const In* in, Out* out, double* verdicts) {
  constexpr int kWide = static_cast<int>(16 / std::max(sizeof(In), sizeof(Out)));
  const Tile tile = tiles[blockIdx.x];
  const UnscaledGradient unscale(scalars);
  bool bad = false;
  for_each_group<kWide>(tile, is_aligned, [&]<int W>(std::int64_t at) {
    const Values<In, W> values = load<W>(in + at);
    Values<Out, W> results;
#pragma unroll
    for (int k = 0; k < W; ++k) {
      results.values[k] = from_float<Out>(unscale(to_float(values.values[k])));
      bad = bad || !isfinite(to_float(results.values[k]));
    }
    store(results, out + at);
  });
  const bool any_bad = __syncthreads_or(bad ? 1 : 0) != 0;
  if (threadIdx.x == 0) verdicts[blockIdx.x] = any_bad ? static_cast<double>(INFINITY) : 0.0;
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

void check_finite(const Tensor& grad, std::int64_t base, std::span<const ArenaSegment> segments, const Tensor& flags,
                  const Tensor& sum_of_squares) {
  checks::check_finite(grad, base, segments, flags, sum_of_squares);
  if (segments.empty()) return;
  const Device device = grad.device();
  const gpu::DeviceGuard guard(device);
  const cudaStream_t stream = gpu::current(device);
  const SegmentTable table = state_of(device).segments.find(base, segments);
  const Tensor squares = Tensor::empty({table.tile_count}, DType::kFloat64, device);
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

void rescale(const Tensor& in, const float* factor, float limit, std::int64_t base,
             std::span<const ArenaSegment> segments, const Tensor& out, const Tensor& flags) {
  checks::rescale(in, base, segments, out, flags);
  if (segments.empty()) return;
  const Device device = out.device();
  const gpu::DeviceGuard guard(device);
  const cudaStream_t stream = gpu::current(device);
  const SegmentTable table = state_of(device).segments.find(base, segments);
  const Tensor verdicts = Tensor::empty({table.tile_count}, DType::kFloat64, device);
  StepScalars scalars;
  scalars.inverse_scale = factor;
  scalars.clip_value = limit;
  visit_floating("rescale", in.dtype(), [&]<class In>() {
    visit_floating("rescale", out.dtype(), [&]<class Out>() {
      if (table.tile_count == 0) return;
      tile_rescale_kernel<<<static_cast<unsigned>(table.tile_count), kThreads, 0, stream>>>(
          table.tiles, aligned(in.data(), out.data()), scalars, cuda::in<In>(in), cuda::out<Out>(out),
          cuda::out<double>(verdicts));
      check_launch("rescale");
    });
  });
  if (!flags.defined()) return;
  segment_squares_kernel<<<static_cast<unsigned>(table.segment_count), kThreads, 0, stream>>>(
      table, cuda::in<double>(verdicts), cuda::out<float>(flags), nullptr);
  check_launch("rescale");
}

}  // namespace lockstep::kernels::cuda
