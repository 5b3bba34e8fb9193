// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/backend.h"
#include "runtime/kernels/cuda/map.cuh"
#include "runtime/kernels/functors/activation.h"
#include "runtime/kernels/geometry/checks.h"

namespace lockstep::kernels {

using namespace cuda;

namespace {

struct Plus {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Times {
  __device__ float operator()(float a, float b) const { return a * b; }
};
struct Relu {
  __device__ float operator()(float x) const { return relu(x); }
  __device__ float operator()(float x, float dy) const { return relu_backward(x, dy); }
};
struct Gelu {
  __device__ float operator()(float x) const { return gelu(x); }
  __device__ float operator()(float x, float dy) const { return gelu_backward(x, dy); }
};
struct TanhGelu {
  __device__ float operator()(float x) const { return gelu_tanh(x); }
  __device__ float operator()(float x, float dy) const { return gelu_tanh_backward(x, dy); }
};

/// Calls f with the functor of an activation that computes something.
template <class F>
void visit_activation(const char* name, Activation activation, F&& f) {
  switch (activation) {
    case Activation::kNone:
      break;
    case Activation::kRelu:
      return f(Relu{});
    case Activation::kGelu:
      return f(Gelu{});
    case Activation::kGeluTanh:
      return f(TanhGelu{});
  }
  throw UsageError(std::string(name) + ": unknown activation " + std::to_string(static_cast<int>(activation)));
}

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
void binary(const char* name, Device device, const Tensor& a, const Tensor& b, const Tensor& out, F f) {
  const bool channels = checks::binary(name, a, b, out);
  const std::int64_t n = a.numel();
  if (n == 0) return;
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
void CudaBackend::accumulate(const Tensor& in, const Tensor& out) {
  checks::same_shape_floating("accumulate", in, out);
  const gpu::DeviceGuard guard(device_);
  visit_floating("accumulate", in.dtype(), [&]<class In>() {
    visit_floating("accumulate", out.dtype(), [&]<class Out>() {
      launch_map("accumulate", gpu::current(device_), in.numel(), cuda::out<Out>(out), OnFloats<Out, Plus>{},
                 cuda::in<Out>(out), cuda::in<In>(in));
    });
  });
}

void CudaBackend::add(const Tensor& a, const Tensor& b, const Tensor& out) {
  binary("add", device_, a, b, out, Plus{});
}

void CudaBackend::multiply(const Tensor& a, const Tensor& b, const Tensor& out) {
  binary("multiply", device_, a, b, out, Times{});
}

void CudaBackend::scale(const Tensor& in, double factor, const float* device_factor, const Tensor& out) {
  checks::same("scale", in, out);
  const std::int64_t n = in.numel();
  const gpu::DeviceGuard guard(device_);
  visit_floating("scale", in.dtype(), [&]<class T>() {
    if (n == 0) return;
    const auto launch = [&]<int W>() {
      scale_kernel<W><<<blocks_for((n + W - 1) / W), kThreads, 0, gpu::current(device_)>>>(
          n, cuda::out<T>(out), factor, device_factor, cuda::in<T>(in));
    };
    visit_width(launch, cuda::in<T>(in), cuda::in<T>(out));
    check_launch("scale");
  });
}

/// Two accesses of sizeof(T) an element.
void CudaBackend::activate(Activation activation, const Tensor& x, const Tensor& y) {
  checks::same("activate", x, y);
  if (activation == Activation::kNone) return cast(x, y);
  const gpu::DeviceGuard guard(device_);
  const cudaStream_t stream = gpu::current(device_);
  visit_floating("activate", x.dtype(), [&]<class T>() {
    visit_activation("activate", activation, [&]<class F>(F f) {
      launch_map("activate", stream, x.numel(), out<T>(y), OnFloats<T, F>{f}, in<T>(x));
    });
  });
}

/// Three accesses of sizeof(T) an element.
void CudaBackend::activate_backward(Activation activation, const Tensor& x, const Tensor& dy, const Tensor& dx) {
  checks::activate_backward(x, dy, dx);
  if (activation == Activation::kNone) return cast(dy, dx);
  const gpu::DeviceGuard guard(device_);
  const cudaStream_t stream = gpu::current(device_);
  visit_floating("activate_backward", x.dtype(), [&]<class T>() {
    visit_activation("activate_backward", activation, [&]<class F>(F f) {
      launch_map("activate_backward", stream, x.numel(), out<T>(dx), OnFloats<T, F>{f}, in<T>(x), in<T>(dy));
    });
  });
}

}  // namespace lockstep::kernels
