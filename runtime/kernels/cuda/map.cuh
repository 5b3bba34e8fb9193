// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "runtime/kernels/cuda/values.cuh"

// Elementwise kernels: out[i] = f(in[i]...), in accesses of up to 16 bytes.

namespace lockstep::kernels::cuda {

/// Calls launch.template operator()<W>() with how many elements a thread moves at once: as many as fill 16 bytes of the
/// widest type, so that every access of a warp is one contiguous range; 1 where a pointer is not aligned for that.
template <class Launch, class... T>
void visit_width(Launch&& launch, const T*... pointers) {
  constexpr int kWide = static_cast<int>(16 / std::max({sizeof(T)...}));
  if (aligned(pointers...)) return launch.template operator()<kWide>();
  launch.template operator()<1>();
}

/// All threads of the grid together. out may be one of the inputs.
template <int W, class Out, class F, class... In>
__device__ void map(std::int64_t n, Out* out, F f, const In*... in) {
  const std::int64_t groups = n / W;
  for (std::int64_t i = first(); i < groups; i += step()) {
    const auto apply = [&](const Values<In, W>&... values) {
      Values<Out, W> result;
#pragma unroll
      for (int k = 0; k < W; ++k) result.values[k] = f(values.values[k]...);
      store(result, out + i * W);
    };
    apply(load<W>(in + i * W)...);
  }
  if constexpr (W > 1) {
#pragma unroll 1
    for (std::int64_t i = groups * W + first(); i < n; i += step()) out[i] = f(in[i]...);
  }
}

/// A function of floats as one of elements: read exactly, rounded once.
template <class Out, class F>
struct OnFloats {
  F f;
  template <class... In>
  __device__ Out operator()(In... in) const {
    return from_float<Out>(f(to_float(in)...));
  }
};

template <int W, class Out, class F, class... In>
__global__ void __launch_bounds__(kThreads) map_kernel(std::int64_t n, Out* out, F f, const In*... in) {
  map<W>(n, out, f, in...);
}

/// out[i] = f(in[i]...) for n elements, appended to the stream.
template <class Out, class F, class... In>
void launch_map(const char* name, cudaStream_t stream, std::int64_t n, Out* out, F f, const In*... in) {
  if (n == 0) return;
  const auto launch = [&]<int W>() {
    map_kernel<W><<<blocks_for((n + W - 1) / W), kThreads, 0, stream>>>(n, out, f, in...);
  };
  visit_width(launch, static_cast<const Out*>(out), in...);
  check_launch(name);
}

}  // namespace lockstep::kernels::cuda
