// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/counter_rng.h"
#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/cuda/map.cuh"
#include "runtime/kernels/functors/activation.h"
#include "runtime/kernels/functors/dropout.h"
#include "runtime/kernels/geometry/checks.h"

namespace lockstep::kernels::cuda {

namespace {

/// An activation's functions as function objects.
template <class Function>
struct Value {
  __device__ float operator()(float x) const { return Function::value(x); }
};
template <class Function>
struct Backward {
  __device__ float operator()(float at, float dy) const { return Function::backward(at, dy); }
};

/// Where the element that x begins with stands in the global tensor.
struct DropoutPlace {
  DropoutKey key;
  std::int64_t first_element;
  std::int64_t elements_of_sample;
};

/// Numbers come in groups of four, whose borders are the global tensor's: x may begin inside one. Wide accesses where
/// it does not, as ever where a sample's elements are a multiple of four. Two accesses of sizeof(T) an element; no mask
/// is stored.
template <class T>
__global__ void __launch_bounds__(kThreads)
    dropout_kernel(std::int64_t n, T* y, Dropout dropout, DropoutPlace place, bool is_aligned, const T* x) {
  constexpr int kWide = Pack<T>::kSize;
  StepPosition moved;
  if (place.key.position != nullptr) moved = *place.key.position;
  const auto first_number =
      static_cast<std::uint64_t>(place.first_element + moved.first_sample * place.elements_of_sample);
  const CounterRng rng(place.key.seed, CounterRng::Purpose::kDropout, place.key.layer, place.key.step + moved.step,
                       place.key.call);
  const std::uint64_t first_group = first_number / 4;
  const int skipped = static_cast<int>(first_number % 4);

  std::int64_t done = 0;
  if (is_aligned && skipped == 0) {
    done = n / kWide * kWide;
    for (std::int64_t i = first() * kWide; i < done; i += step() * kWide) {
      Values<T, kWide> values = load<kWide>(x + i);
#pragma unroll
      for (int quad = 0; quad < kWide; quad += 4) {
        const std::array<std::uint32_t, 4> words = rng.block(first_group + static_cast<std::uint64_t>(i + quad) / 4);
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          T& value = values.values[quad + k];
          value = from_float<T>(dropout(words[k], to_float(value)));
        }
      }
      store(values, y + i);
    }
  }
  // A group of the global tensor a thread.
  for (std::int64_t group = done / 4 + first(); 4 * group - skipped < n; group += step()) {
    const std::array<std::uint32_t, 4> words = rng.block(first_group + static_cast<std::uint64_t>(group));
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const std::int64_t i = 4 * group + k - skipped;
      if (i >= done && i < n) y[i] = from_float<T>(dropout(words[k], to_float(x[i])));
    }
  }
}

/// Two accesses of sizeof(T) an element.
void activate(Activation activation, const Tensor& x, const Tensor& y) {
  checks::same("activate", x, y);
  if (activation == Activation::kNone) return kElementwise.cast(x, y);
  const Device device = y.device();
  const gpu::DeviceGuard guard(device);
  const cudaStream_t stream = gpu::current(device);
  visit_floating("activate", x.dtype(), [&]<class T>() {
    visit_activation(activation, [&]<class Function>(Function) {
      launch_map("activate", stream, x.numel(), out<T>(y), OnFloats<T, Value<Function>>{}, in<T>(x));
    });
  });
}

/// Three accesses of sizeof(T) an element.
void activate_backward(Activation activation, const Tensor& at, const Tensor& dy, const Tensor& dx) {
  checks::activate_backward(at, dy, dx);
  if (activation == Activation::kNone) return kElementwise.cast(dy, dx);
  const Device device = dx.device();
  const gpu::DeviceGuard guard(device);
  const cudaStream_t stream = gpu::current(device);
  visit_floating("activate_backward", at.dtype(), [&]<class T>() {
    visit_activation(activation, [&]<class Function>(Function) {
      launch_map("activate_backward", stream, at.numel(), out<T>(dx), OnFloats<T, Backward<Function>>{}, in<T>(at),
                 in<T>(dy));
    });
  });
}

void dropout(const Tensor& x, double p, const DropoutKey& key, std::int64_t first_element, const Tensor& y) {
  checks::dropout(x, p, y);
  const std::int64_t n = x.numel();
  if (n == 0) return;
  const DropoutPlace place{key, first_element, x.shape().rank() > 0 ? n / x.size(0) : 1};
  const Device device = y.device();
  const gpu::DeviceGuard guard(device);
  visit_floating("dropout", x.dtype(), [&]<class T>() {
    const bool is_aligned = aligned(in<T>(x), in<T>(y));
    dropout_kernel<<<blocks_for((n + 3) / 4 + 1), kThreads, 0, gpu::current(device)>>>(n, out<T>(y), Dropout(p), place,
                                                                                       is_aligned, in<T>(x));
    check_launch("dropout");
  });
}

}  // namespace

const Pointwise kPointwise{.activate = activate, .activate_backward = activate_backward, .dropout = dropout};

}  // namespace lockstep::kernels::cuda
