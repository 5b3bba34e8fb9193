// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <new>

#include "runtime/kernels/cuda/device_state.h"
#include "runtime/kernels/cuda/map.cuh"
#include "runtime/kernels/cuda/segment_tables.h"
#include "runtime/kernels/cuda/tiles.cuh"
#include "runtime/kernels/functors/optimizer.h"
#include "runtime/kernels/geometry/check.h"
#include "runtime/kernels/geometry/operand_checks.h"

// One launch for a whole slice of the arena: a block a tile updates master and state, and writes the compute copy.

namespace lockstep::kernels::cuda {

/// Elements a thread updates at once: 16 bytes of float32, so that every access of a warp is one contiguous range.
constexpr int kWide = 4;

/// The weights that a step writes beside the optimizer's state.
struct Weights {
  float* master;
  void* copy;  ///< null: none
  DType copy_dtype;
  DType master_precision;
};

__device__ inline float rounded(float value, DType precision) {
  if (precision == DType::kFloat16) return to_float(from_float<Half>(value));
  if (precision == DType::kBFloat16) return to_float(from_float<BFloat16>(value));
  return value;
}

/// A step whose rule R is made of its options, the step's scalars and the segment.
template <class R, class Options>
struct StepOf {
  using Rule = R;
  Options rule;

  __device__ Rule make(const StepScalars& scalars, const ArenaSegment& segment, std::int64_t) const {
    return {rule, scalars, segment};
  }
};

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

/// Whether the step changes anything of the segment.
__device__ inline bool applies(const StepScalars& scalars, const ArenaSegment& segment) {
  return (scalars.found_inf == nullptr || *scalars.found_inf == 0.0f) && has_gradient(scalars, segment);
}

/// The rule of a tile's segment, step.make(scalars, segment, its number), made by one thread: bias corrections are
/// powers in float64. A barrier for the whole block, and once in a kernel.
template <class Step>
__device__ typename Step::Rule made_once(const Step& step, const StepScalars& scalars, const ArenaSegment& segment,
                                         std::int64_t number) {
  using Rule = typename Step::Rule;
  alignas(Rule) __shared__ std::byte made[sizeof(Rule)];
  if (threadIdx.x == 0) new (made) Rule(step.make(scalars, segment, number));
  __syncthreads();
  return *reinterpret_cast<const Rule*>(made);
}

/// An optimizer on a tile. Step::Rule is its functor; `step` holds the pointers to its state. With a float16 gradient
/// and copy an element costs 12 bytes and 8 for each float of state: 20 for SGD with momentum, 28 for Adam.
template <class Step, class T>
__global__ void __launch_bounds__(kThreads)
    step_kernel(SegmentTable table, bool is_aligned, Step step, StepScalars scalars, const T* __restrict__ grad,
                Weights weights) {
  const Tile tile = table.tiles[blockIdx.x];
  const ArenaSegment segment = table.segments[tile.segment];
  if (!applies(scalars, segment)) return;
  const typename Step::Rule rule = made_once(step, scalars, segment, tile.segment);
  for_each_group<kWide>(tile, is_aligned, [&]<int W>(std::int64_t at) {
    Values<float, W> master = load<W>(weights.master + at);
    const Values<T, W> gradient = load<W>(grad + at);
    step.template update<W>(rule, master, gradient, at);
    store_weights(weights, master, at);
  });
}

inline SegmentTable table_of(const ArenaSlice& slice) {
  return state_of(slice.master.device()).segments.find(slice.base, slice.segments);
}

/// Whether the slice, and its optimizer's state, take 16-byte accesses.
template <class States = std::initializer_list<const float*>>
bool is_aligned(const ArenaSlice& slice, const States& states) {
  return aligned(slice.master.data(), slice.grad.data(), slice.copy.defined() ? slice.copy.data() : nullptr) &&
         std::ranges::all_of(states, [](const float* state) { return aligned(state); });
}

/// `states`: the optimizer's tensors, float32.
template <class Step, class States = std::initializer_list<const float*>>
void launch_step(const char* name, const ArenaSlice& slice, const Step& step, const StepScalars& scalars,
                 const States& states) {
  const Device device = slice.master.device();
  const SegmentTable table = table_of(slice);
  if (table.tile_count == 0) return;
  const Weights weights{out<float>(slice.master), slice.copy.defined() ? slice.copy.data() : nullptr,
                        slice.copy.defined() ? slice.copy.dtype() : DType::kFloat32, slice.master_precision};
  const gpu::DeviceGuard guard(device);
  visit_floating(name, slice.grad.dtype(), [&]<class T>() {
    step_kernel<<<static_cast<unsigned>(table.tile_count), kThreads, 0, gpu::current(device)>>>(
        table, is_aligned(slice, states), step, scalars, in<T>(slice.grad), weights);
    check_launch(name);
  });
}

inline void require_narrow_copy(const char* operation, const ArenaSlice& slice) {
  Check(operation).that(!slice.copy.defined() || slice.copy.dtype() != DType::kFloat64,
                        "copy must be float32, float16 or bfloat16, found float64");
}

}  // namespace lockstep::kernels::cuda
