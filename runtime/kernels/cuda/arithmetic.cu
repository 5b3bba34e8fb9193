// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/cuda/map.cuh"
#include "runtime/kernels/geometry/checks.h"

namespace lockstep::kernels::cuda {

namespace {

struct Plus {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Times {
  __device__ float operator()(float a, float b) const { return a * b; }
};
/// b is one row: a thread's column moves by the same distance each time, so there is one division a thread. Two
/// accesses of sizeof(T) an element; b stays in the cache.
template <int W, class T, class F>
__global__ void __launch_bounds__(kThreads)
    map_channels_kernel(std::int64_t groups, std::int64_t groups_of_row, T* out, F f, const T* a, const T* b) {
  const std::int64_t stride = step() % groups_of_row;
  std::int64_t column = first() % groups_of_row;
  for (std::int64_t i = first(); i < groups; i += step()) {
    const Values<T, W> values = load<W>(a + i * W);
    const Values<T, W> row = load<W>(b + column * W);
    Values<T, W> result;
#pragma unroll
    for (int k = 0; k < W; ++k) result.values[k] = f(values.values[k], row.values[k]);
    store(result, out + i * W);
    column += stride;
    if (column >= groups_of_row) column -= groups_of_row;
  }
}

/// add and multiply: three accesses of sizeof(T) an element, two where b is broadcast.
template <class F>
void binary(const char* name, const Tensor& a, const Tensor& b, const Tensor& out, F f) {
  const bool channels = checks::binary(name, a, b, out);
  const std::int64_t n = a.numel();
  if (n == 0) return;
  const Device device = out.device();
  const gpu::DeviceGuard guard(device);
  const cudaStream_t stream = gpu::current(device);
  if (!channels) {
    return visit_floating(name, a.dtype(), [&]<class T>() {
      launch_map(name, stream, n, cuda::out<T>(out), OnFloats<T, F>{f}, in<T>(a), in<T>(b));
    });
  }
  const auto launch = [&]<class T, int W>() {
    map_channels_kernel<W><<<blocks_for(n / W), kThreads, 0, stream>>>(n / W, b.numel() / W, cuda::out<T>(out),
                                                                       OnFloats<T, F>{f}, in<T>(a), in<T>(b));
  };
  visit_channels(name, a.dtype(), b.numel(), launch, a.data(), b.data(), out.data());
  check_launch(name);
}

/// Two accesses of sizeof(T) an element.
template <int W, class T>
__global__ void __launch_bounds__(kThreads)
    scale_kernel(std::int64_t n, T* out, double factor, const float* device_factor, const T* in) {
  const float whole =
      static_cast<float>(device_factor != nullptr ? factor * static_cast<double>(*device_factor) : factor);
  map<W>(
      n, out, [whole](T x) { return from_float<T>(to_float(x) * whole); }, in);
}

}  // namespace

/// sizeof(In) read, sizeof(Out) read and written an element.
void accumulate(const Tensor& in, const Tensor& out) {
  checks::same_shape_floating("accumulate", in, out);
  const Device device = out.device();
  const gpu::DeviceGuard guard(device);
  visit_floating("accumulate", in.dtype(), [&]<class In>() {
    visit_floating("accumulate", out.dtype(), [&]<class Out>() {
      launch_map("accumulate", gpu::current(device), in.numel(), cuda::out<Out>(out), OnFloats<Out, Plus>{},
                 cuda::in<Out>(out), cuda::in<In>(in));
    });
  });
}

void add(const Tensor& a, const Tensor& b, const Tensor& out) { binary("add", a, b, out, Plus{}); }

void multiply(const Tensor& a, const Tensor& b, const Tensor& out) { binary("multiply", a, b, out, Times{}); }

void scale(const Tensor& in, double factor, const float* device_factor, const Tensor& out) {
  checks::same("scale", in, out);
  const std::int64_t n = in.numel();
  const Device device = out.device();
  const gpu::DeviceGuard guard(device);
  visit_floating("scale", in.dtype(), [&]<class T>() {
    if (n == 0) return;
    const auto launch = [&]<int W>() {
      scale_kernel<W><<<blocks_for((n + W - 1) / W), kThreads, 0, gpu::current(device)>>>(
          n, cuda::out<T>(out), factor, device_factor, cuda::in<T>(in));
    };
    visit_width(launch, cuda::in<T>(in), cuda::in<T>(out));
    check_launch("scale");
  });
}

}  // namespace lockstep::kernels::cuda
