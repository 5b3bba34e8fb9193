// SPDX-License-Identifier: Apache-2.0
// accumulate and scale.
#include "runtime/kernels/cuda/map.cuh"
#include "runtime/kernels/geometry/operand_checks.h"

namespace lockstep::kernels::cuda {

namespace {

struct Plus {
  __device__ float operator()(float a, float b) const { return a + b; }
};
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
