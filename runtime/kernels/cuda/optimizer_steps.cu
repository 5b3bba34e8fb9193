// SPDX-License-Identifier: Apache-2.0
// One launch for a whole slice of the arena: a block a tile unscales, clips, updates master and state, and writes the
// compute copy.
#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <new>

#include "runtime/kernels/cuda/device_state.h"
#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/cuda/map.cuh"
#include "runtime/kernels/cuda/segment_tables.h"
#include "runtime/kernels/cuda/tiles.cuh"
#include "runtime/kernels/functors/optimizer.h"
#include "runtime/kernels/geometry/check.h"
#include "runtime/kernels/geometry/checks.h"

namespace lockstep::kernels::cuda {

namespace {

/// Elements a thread updates at once: 16 bytes of float32, so that every access of a warp is one contiguous range.
constexpr int kWide = 4;

/// What a step writes besides the optimizer's state.
struct Weights {
  float* master;
  void* copy;  ///< null: none
  DType copy_dtype;
  DType master_precision;
};

__device__ float rounded(float value, DType precision) {
  if (precision == DType::kFloat16) return to_float(from_float<Half>(value));
  if (precision == DType::kBFloat16) return to_float(from_float<BFloat16>(value));
  return value;
}

template <class T, int W>
__device__ void store_copy(const Values<float, W>& master, void* copy, std::int64_t at) {
  Values<T, W> narrow;
#pragma unroll
  for (int k = 0; k < W; ++k) narrow.values[k] = from_float<T>(master.values[k]);
  store(narrow, static_cast<T*>(copy) + at);
}

template <int W>
__device__ void store_weights(const Weights& weights, Values<float, W> master, std::int64_t at) {
  if (weights.master_precision != DType::kFloat32) {
#pragma unroll
    for (int k = 0; k < W; ++k) master.values[k] = rounded(master.values[k], weights.master_precision);
  }
  store(master, weights.master + at);
  if (weights.copy == nullptr) return;
  if (weights.copy_dtype == DType::kFloat16) {
    store_copy<Half>(master, weights.copy, at);
  } else if (weights.copy_dtype == DType::kBFloat16) {
    store_copy<BFloat16>(master, weights.copy, at);
  } else {
    store(master, static_cast<float*>(weights.copy) + at);
  }
}

/// An optimizer on a tile. Step::Rule is its functor, made once a block; `step` holds the pointers to its state. With a
/// float16 gradient and copy an element costs 12 bytes and 8 for each float of state: 20 for SGD with momentum, 28 for
/// Adam.
template <class Step, class T>
__global__ void __launch_bounds__(kThreads)
    step_kernel(SegmentTable table, bool is_aligned, Step step, StepScalars scalars, const T* __restrict__ grad,
                Weights weights) {
  const Tile tile = table.tiles[blockIdx.x];
  if (scalars.found_inf != nullptr && *scalars.found_inf != 0.0f) return;
  const ArenaSegment segment = table.segments[tile.segment];
  if (!has_gradient(scalars, segment)) return;
  using Rule = typename Step::Rule;
  alignas(Rule) __shared__ std::byte made[sizeof(Rule)];
  // By one thread: Adam's bias corrections are powers in float64.
  if (threadIdx.x == 0) new (made) Rule(step.options, scalars, segment);
  __syncthreads();
  const Rule rule = *reinterpret_cast<const Rule*>(made);
  for_each_group<kWide>(tile, is_aligned, [&]<int W>(std::int64_t at) {
    Values<float, W> master = load<W>(weights.master + at);
    const Values<T, W> gradient = load<W>(grad + at);
    step.template update<W>(rule, master, gradient, at);
    store_weights(weights, master, at);
  });
}

struct PlainSgd {
  using Rule = Sgd;
  SgdOptions options;

  template <int W, class T>
  __device__ void update(const Rule& rule, Values<float, W>& master, const Values<T, W>& grad, std::int64_t) const {
#pragma unroll
    for (int k = 0; k < W; ++k) master.values[k] = rule(master.values[k], to_float(grad.values[k]));
  }
};

struct MomentumSgd {
  using Rule = Sgd;
  SgdOptions options;
  float* momentum;

  template <int W, class T>
  __device__ void update(const Rule& rule, Values<float, W>& master, const Values<T, W>& grad, std::int64_t at) const {
    Values<float, W> velocity = load<W>(momentum + at);
#pragma unroll
    for (int k = 0; k < W; ++k) {
      master.values[k] = rule(master.values[k], to_float(grad.values[k]), velocity.values[k]);
    }
    store(velocity, momentum + at);
  }
};

struct AdamStep {
  using Rule = Adam;
  AdamOptions options;
  float* m;
  float* v;

  template <int W, class T>
  __device__ void update(const Rule& rule, Values<float, W>& master, const Values<T, W>& grad, std::int64_t at) const {
    Values<float, W> first = load<W>(m + at);
    Values<float, W> second = load<W>(v + at);
#pragma unroll
    for (int k = 0; k < W; ++k) {
      master.values[k] = rule(master.values[k], to_float(grad.values[k]), first.values[k], second.values[k]);
    }
    store(first, m + at);
    store(second, v + at);
  }
};

/// `states`: the optimizer's tensors, float32.
template <class Step>
void launch_step(const char* name, const ArenaSlice& slice, const Step& step, const StepScalars& scalars,
                 std::initializer_list<const float*> states) {
  const Device device = slice.master.device();
  const SegmentTable table = state_of(device).segments.find(slice.base, slice.segments);
  if (table.tile_count == 0) return;
  const Weights weights{out<float>(slice.master), slice.copy.defined() ? slice.copy.data() : nullptr,
                        slice.copy.defined() ? slice.copy.dtype() : DType::kFloat32, slice.master_precision};
  const bool is_aligned = aligned(weights.master, slice.grad.data(), weights.copy) &&
                          std::ranges::all_of(states, [](const float* state) { return aligned(state); });
  const gpu::DeviceGuard guard(device);
  visit_floating(name, slice.grad.dtype(), [&]<class T>() {
    step_kernel<<<static_cast<unsigned>(table.tile_count), kThreads, 0, gpu::current(device)>>>(
        table, is_aligned, step, scalars, in<T>(slice.grad), weights);
    check_launch(name);
  });
}

void check_slice(const char* operation, const ArenaSlice& slice) {
  checks::arena_slice(operation, slice);
  Check(operation).that(!slice.copy.defined() || slice.copy.dtype() != DType::kFloat64,
                        "copy must be float32, float16 or bfloat16, found float64");
}

}  // namespace

void sgd_step(const ArenaSlice& slice, const SgdOptions& options, const StepScalars& scalars, const Tensor& momentum) {
  check_slice("sgd_step", slice);
  if (options.momentum == 0) {
    return launch_step("sgd_step", slice, PlainSgd{options}, scalars, {});
  }
  checks::optimizer_state("sgd_step", "momentum", slice, momentum);
  float* velocity = out<float>(momentum);
  launch_step("sgd_step", slice, MomentumSgd{options, velocity}, scalars, {velocity});
}

void adam_step(const ArenaSlice& slice, const AdamOptions& options, const StepScalars& scalars, const Tensor& m,
               const Tensor& v) {
  check_slice("adam_step", slice);
  checks::optimizer_state("adam_step", "m", slice, m);
  checks::optimizer_state("adam_step", "v", slice, v);
  const AdamStep step{options, out<float>(m), out<float>(v)};
  launch_step("adam_step", slice, step, scalars, {step.m, step.v});
}

}  // namespace lockstep::kernels::cuda
