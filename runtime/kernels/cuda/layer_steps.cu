// SPDX-License-Identifier: Apache-2.0
// The steps that need a parameter's norms: a launch that measures its tiles, one that joins them, one that updates.
#include "runtime/kernels/cuda/block_sum.cuh"
#include "runtime/kernels/cuda/optimizer_steps.cuh"
#include "runtime/kernels/functors/layer_optimizer.h"

namespace lockstep::kernels::cuda {

namespace {

/// The sums over a block, given to its first thread. Barriers for the whole block, and once in a kernel.
__device__ LayerSquares block_sum(const LayerSquares& squares) {
  LayerSquares sums;
  sums.weight = cuda::block_sum(squares.weight);
  __syncthreads();  // the first thread has read what the second sum overwrites
  sums.other = cuda::block_sum(squares.other);
  return sums;
}

/// The largest of a block, given to its first thread. A barrier for the whole block, and once in a kernel.
__device__ double block_max(double value) {
  constexpr int kWarps = kThreads / kWarp;
  __shared__ double of_warp[kWarps];
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    value = fmax(value, __shfl_down_sync(~0u, value, distance));
  }
  if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = value;
  __syncthreads();
  double largest = 0;
  if (threadIdx.x == 0) {
    for (const double part : of_warp) largest = fmax(largest, part);
  }
  return largest;
}

__device__ double squared(float value) { return static_cast<double>(value) * static_cast<double>(value); }

/// The norms of layer_rates(), of weights and gradients. Reads 4 bytes of weight and sizeof(T) of gradient an element.
struct MeasureGradients {
  using Rule = UnscaledGradient;
  using Measured = LayerSquares;
  const float* master;

  __device__ Rule make(const StepScalars& scalars, const ArenaSegment&, std::int64_t) const { return Rule(scalars); }

  template <int W, class T>
  __device__ void add(const Rule& unscale, const Values<T, W>& grad, std::int64_t at, LayerSquares& squares) const {
    const Values<float, W> weight = load<W>(master + at);
#pragma unroll
    for (int k = 0; k < W; ++k) {
      squares.weight += squared(weight.values[k]);
      squares.other += squared(unscale(to_float(grad.values[k])));
    }
  }

  static __device__ LayerSquares over_block(const LayerSquares& squares) { return block_sum(squares); }
  static __device__ void join(LayerSquares& squares, const LayerSquares& tile) {
    squares.weight += tile.weight;
    squares.other += tile.other;
  }
};

/// LAMB's moments, with the norms of weight and update: 20 bytes and sizeof(T) an element.
struct LambMoments : StepOf<Lamb, LambRule> {
  using Measured = LayerSquares;
  const float* master;
  float* m;
  float* v;

  template <int W, class T>
  __device__ void add(const Rule& lamb, const Values<T, W>& grad, std::int64_t at, LayerSquares& squares) const {
    const Values<float, W> weight = load<W>(master + at);
    Values<float, W> first = load<W>(m + at);
    Values<float, W> second = load<W>(v + at);
#pragma unroll
    for (int k = 0; k < W; ++k) {
      lamb.update_moments(weight.values[k], to_float(grad.values[k]), first.values[k], second.values[k]);
      squares.weight += squared(weight.values[k]);
      squares.other += squared(lamb.update(weight.values[k], first.values[k], second.values[k]));
    }
    store(first, m + at);
    store(second, v + at);
  }

  static __device__ LayerSquares over_block(const LayerSquares& squares) { return block_sum(squares); }
  static __device__ void join(LayerSquares& squares, const LayerSquares& tile) {
    MeasureGradients::join(squares, tile);
  }
};

/// NovoGrad's norms: sizeof(T) an element.
template <bool kLargest>
struct MeasureNorm {
  using Rule = UnscaledGradient;
  using Measured = double;

  __device__ Rule make(const StepScalars& scalars, const ArenaSegment&, std::int64_t) const { return Rule(scalars); }

  template <int W, class T>
  __device__ void add(const Rule& unscale, const Values<T, W>& grad, std::int64_t, double& square) const {
#pragma unroll
    for (int k = 0; k < W; ++k) join(square, squared(unscale(to_float(grad.values[k]))));
  }

  static __device__ double over_block(double square) { return kLargest ? block_max(square) : cuda::block_sum(square); }
  static __device__ void join(double& square, double other) {
    square = kLargest ? fmax(square, other) : square + other;
  }
};

template <class Measure, class T>
__global__ void __launch_bounds__(kThreads)
    measure_kernel(SegmentTable table, bool is_aligned, Measure measure, StepScalars scalars,
                   const T* __restrict__ grad, typename Measure::Measured* of_tile) {
  const Tile tile = table.tiles[blockIdx.x];
  const ArenaSegment segment = table.segments[tile.segment];
  if (!applies(scalars, segment)) return;
  const typename Measure::Rule rule = made_once(measure, scalars, segment, tile.segment);
  typename Measure::Measured measured{};
  for_each_group<kWide>(tile, is_aligned, [&]<int W>(std::int64_t at) {
    measure.template add<W>(rule, load<W>(grad + at), at, measured);
  });
  measured = Measure::over_block(measured);
  if (threadIdx.x == 0) of_tile[blockIdx.x] = measured;
}

/// A block a segment joins its tiles and calls finish(segment, its number, measured).
template <class Measure, class Finish>
__global__ void __launch_bounds__(kThreads)
    join_kernel(SegmentTable table, StepScalars scalars, const typename Measure::Measured* of_tile, Finish finish) {
  const ArenaSegment segment = table.segments[blockIdx.x];
  if (!applies(scalars, segment)) return;
  const std::int64_t end = table.first_tile[blockIdx.x + 1];
  typename Measure::Measured measured{};
  for (std::int64_t i = table.first_tile[blockIdx.x] + threadIdx.x; i < end; i += kThreads) {
    Measure::join(measured, of_tile[i]);
  }
  measured = Measure::over_block(measured);
  if (threadIdx.x == 0) finish(scalars, segment, blockIdx.x, measured);
}

template <class Measure, class Finish>
void measure(const char* name, const ArenaSlice& slice, const Measure& what, const StepScalars& scalars,
             std::initializer_list<const float*> states, const Finish& finish) {
  const Device device = slice.master.device();
  const SegmentTable table = table_of(slice);
  if (table.segment_count == 0) return;
  const gpu::DeviceGuard guard(device);
  const cudaStream_t stream = gpu::current(device);
  using Measured = typename Measure::Measured;
  constexpr std::int64_t kDoubles = sizeof(Measured) / sizeof(double);
  const Tensor tiles = Tensor::empty({kDoubles * table.tile_count}, DType::kFloat64, device);
  auto* of_tile = reinterpret_cast<Measured*>(out<double>(tiles));
  visit_floating(name, slice.grad.dtype(), [&]<class T>() {
    if (table.tile_count == 0) return;
    measure_kernel<<<static_cast<unsigned>(table.tile_count), kThreads, 0, stream>>>(
        table, is_aligned(slice, states), what, scalars, in<T>(slice.grad), of_tile);
    check_launch(name);
  });
  join_kernel<Measure>
      <<<static_cast<unsigned>(table.segment_count), kThreads, 0, stream>>>(table, scalars, of_tile, finish);
  check_launch(name);
}

struct WriteLayerRate {
  LayerRateRule rule;
  float* rates;

  __device__ void operator()(const StepScalars& scalars, const ArenaSegment& segment, std::int64_t,
                             const LayerSquares& squares) const {
    if (segment.adapts == 0) return;
    const LayerRate found = layer_rate(rule, scalars, segment, squares);
    rates[2 * segment.parameter] = found.rate;
    rates[2 * segment.parameter + 1] = found.decay;
  }
};

struct WriteTrustRatio {
  double* ratios;  ///< [segments]

  __device__ void operator()(const StepScalars&, const ArenaSegment& segment, std::int64_t number,
                             const LayerSquares& squares) const {
    ratios[number] = trust_ratio(segment, squares);
  }
};

struct WriteNovogradNorm {
  NovogradRule rule;
  float* norms;

  __device__ void operator()(const StepScalars& scalars, const ArenaSegment& segment, std::int64_t,
                             double square) const {
    float& norm = norms[segment.parameter];
    norm = novograd_norm(rule, scalars, segment, norm, square);
  }
};

/// 16 bytes, 2 of the copy, and none of the gradient an element.
struct LambWeights {
  using Rule = Lamb;
  LambRule rule;
  const double* ratios;
  const float* m;
  const float* v;

  __device__ Rule make(const StepScalars& scalars, const ArenaSegment& segment, std::int64_t number) const {
    return {rule, scalars, segment, ratios[number]};
  }

  template <int W, class T>
  __device__ void update(const Rule& lamb, Values<float, W>& master, const Values<T, W>&, std::int64_t at) const {
    const Values<float, W> first = load<W>(m + at);
    const Values<float, W> second = load<W>(v + at);
#pragma unroll
    for (int k = 0; k < W; ++k) master.values[k] = lamb(master.values[k], first.values[k], second.values[k]);
  }
};

struct NovogradStep {
  using Rule = Novograd;
  NovogradRule rule;
  float* m;
  const float* norms;

  __device__ Rule make(const StepScalars& scalars, const ArenaSegment& segment, std::int64_t) const {
    return {rule, scalars, segment, norms[segment.parameter]};
  }

  template <int W, class T>
  __device__ void update(const Rule& novograd, Values<float, W>& master, const Values<T, W>& grad,
                         std::int64_t at) const {
    Values<float, W> first = load<W>(m + at);
#pragma unroll
    for (int k = 0; k < W; ++k) {
      master.values[k] = novograd(master.values[k], to_float(grad.values[k]), first.values[k]);
    }
    store(first, m + at);
  }
};

}  // namespace

void layer_rates(const ArenaSlice& slice, const LayerRateRule& rule, const StepScalars& scalars, const Tensor& rates) {
  checks::layer_rates(slice, rates);
  measure("layer_rates", slice, MeasureGradients{in<float>(slice.master)}, scalars, {},
          WriteLayerRate{rule, out<float>(rates)});
}

void lamb_step(const ArenaSlice& slice, const LambRule& rule, const StepScalars& scalars, const Tensor& m,
               const Tensor& v) {
  checks::arena_slice("lamb_step", slice);
  checks::optimizer_state("lamb_step", "m", slice, m);
  checks::optimizer_state("lamb_step", "v", slice, v);
  require_narrow_copy("lamb_step", slice);
  const Tensor ratios =
      Tensor::empty({static_cast<std::int64_t>(slice.segments.size())}, DType::kFloat64, slice.master.device());
  const LambMoments moments{rule, in<float>(slice.master), out<float>(m), out<float>(v)};
  measure("lamb_step", slice, moments, scalars, {moments.m, moments.v}, WriteTrustRatio{out<double>(ratios)});
  launch_step("lamb_step", slice, LambWeights{rule, in<double>(ratios), moments.m, moments.v}, scalars,
              {moments.m, moments.v});
}

void novograd_step(const ArenaSlice& slice, const NovogradRule& rule, const StepScalars& scalars, const Tensor& m,
                   const Tensor& norms) {
  checks::novograd_step(slice, m, norms);
  require_narrow_copy("novograd_step", slice);
  const WriteNovogradNorm write{rule, out<float>(norms)};
  if (rule.max_norm) {
    measure("novograd_step", slice, MeasureNorm<true>{}, scalars, {}, write);
  } else {
    measure("novograd_step", slice, MeasureNorm<false>{}, scalars, {}, write);
  }
  const NovogradStep step{rule, out<float>(m), write.norms};
  launch_step("novograd_step", slice, step, scalars, {step.m});
}

}  // namespace lockstep::kernels::cuda
