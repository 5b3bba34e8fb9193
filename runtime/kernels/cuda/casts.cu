// SPDX-License-Identifier: Apache-2.0
// Writing elements of any dtype: fill, cast, copy_unless.
#include <concepts>
#include <cstring>

#include "runtime/kernels/cuda/map.cuh"
#include "runtime/kernels/functors/convert.h"
#include "runtime/kernels/functors/visit_dtype.h"
#include "runtime/kernels/geometry/check.h"
#include "runtime/kernels/geometry/operand_checks.h"

namespace lockstep::kernels::cuda {

namespace {

/// Calls f.template operator()<T>() with the unsigned integer of an element's size.
template <class F>
void visit_bits(DType dtype, F&& f) {
  switch (size_of(dtype)) {
    case 1:
      return f.template operator()<std::uint8_t>();
    case 2:
      return f.template operator()<std::uint16_t>();
    case 4:
      return f.template operator()<std::uint32_t>();
    default:
      return f.template operator()<std::uint64_t>();
  }
}

template <class T>
struct Constant {
  T value;
  __device__ T operator()() const { return value; }
};

struct Identity {
  __device__ float operator()(float x) const { return x; }
};

/// Between the floating dtypes of this device: sizeof(In) read and sizeof(Out) written an element, in wide accesses.
template <class Out>
using Round = OnFloats<Out, Identity>;

template <class T>
concept Fast = std::same_as<T, float> || std::same_as<T, Half> || std::same_as<T, BFloat16>;

/// The other pairs, which no step casts: an element a thread.
template <class Out, class In>
__global__ void __launch_bounds__(kThreads) convert_kernel(std::int64_t n, Out* out, const In* in) {
  map<1>(
      n, out, [](In x) { return convert<Out, In>(x); }, in);
}

template <class Out, class In>
void launch_cast(cudaStream_t stream, std::int64_t n, Out* out, const In* in) {
  if constexpr (Fast<Out> && Fast<In>) {
    launch_map("cast", stream, n, out, Round<Out>{}, in);
  } else if (n > 0) {
    convert_kernel<<<blocks_for(n), kThreads, 0, stream>>>(n, out, in);
    check_launch("cast");
  }
}

/// Two accesses of sizeof(T) an element, none where it is rejected.
template <int W, class T>
__global__ void __launch_bounds__(kThreads)
    copy_unless_kernel(std::int64_t n, T* out, const float* rejected, const T* in) {
  if (*rejected != 0.0f) return;
  map<W>(
      n, out, [](T x) { return x; }, in);
}

}  // namespace

/// sizeof(T) written an element.
void fill(const Tensor& out, double value) {
  Check("fill").that(out.defined(), "out must be defined");
  const Device device = out.device();
  const gpu::DeviceGuard guard(device);
  const cudaStream_t stream = gpu::current(device);
  std::uint64_t bits = 0;
  visit_dtype(out.dtype(), [&]<class T>() {
    const T converted = convert<T>(value);
    std::memcpy(&bits, &converted, sizeof(converted));
  });
  visit_bits(out.dtype(), [&]<class T>() {
    launch_map("fill", stream, out.numel(), cuda::out<T>(out), Constant<T>{static_cast<T>(bits)});
  });
}

void cast(const Tensor& in, const Tensor& out) {
  checks::cast(in, out);
  const Device device = out.device();
  if (in.dtype() == out.dtype()) {
    if (!in.aliases(out)) gpu::copy(out.data(), in.data(), in.bytes(), gpu::current_stream(device));
    return;
  }
  const gpu::DeviceGuard guard(device);
  const cudaStream_t stream = gpu::current(device);
  visit_dtype(in.dtype(), [&]<class In>() {
    visit_dtype(out.dtype(), [&]<class Out>() {
      if constexpr (!std::same_as<In, Out>) {
        launch_cast(stream, in.numel(), cuda::out<Out>(out), cuda::in<In>(in));
      }
    });
  });
}

void copy_unless(const float* rejected, const Tensor& in, const Tensor& out) {
  checks::same("copy_unless", in, out);
  const std::int64_t n = in.numel();
  if (n == 0) return;
  const Device device = out.device();
  const gpu::DeviceGuard guard(device);
  visit_bits(in.dtype(), [&]<class T>() {
    const auto launch = [&]<int W>() {
      copy_unless_kernel<W><<<blocks_for((n + W - 1) / W), kThreads, 0, gpu::current(device)>>>(
          n, cuda::out<T>(out), rejected, cuda::in<T>(in));
    };
    visit_width(launch, cuda::in<T>(in), cuda::in<T>(out));
    check_launch("copy_unless");
  });
}

}  // namespace lockstep::kernels::cuda
