// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/counter_rng.h"
#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/cuda/map.cuh"
#include "runtime/kernels/functors/dropout.h"
#include "runtime/kernels/functors/random.h"
#include "runtime/kernels/functors/unary.h"
#include "runtime/kernels/geometry/operand_checks.h"
#include "runtime/kernels/pointwise.h"

namespace lockstep::kernels::cuda {

namespace {

/// A function of the list as function objects.
template <class Function>
struct Value {
  Function function;
  __device__ float operator()(float x) const {
    if constexpr (HasLimit<Function>) {
      if (!(fabsf(x) <= Function::kLimit)) return static_cast<float>(function.exact(static_cast<double>(x)));
    }
    return function.value(x);
  }
};
template <class Function>
struct Backward {
  Function function;
  __device__ float operator()(float at, float dy) const {
    if constexpr (HasLimit<Function>) {
      if (!(fabsf(at) <= Function::kLimit)) {
        return static_cast<float>(static_cast<double>(dy) * function.exact_derivative(static_cast<double>(at)));
      }
    }
    return function.backward(at, dy);
  }
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

/// A group of four numbers of the stream a thread. One access of sizeof(T) an element.
template <class T, class Transform>
__global__ void __launch_bounds__(kThreads)
    random_kernel(std::int64_t n, T* out, Transform pair_of, RandomKey key, std::int64_t first_element) {
  const CounterRng rng = stream_of(key);
  const auto first_number = static_cast<std::uint64_t>(first_element);
  const int skipped = static_cast<int>(first_number % 4);
  for (std::int64_t group = first(); 4 * group - skipped < n; group += step()) {
    const std::array<std::uint32_t, 4> words = rng.block(first_number / 4 + static_cast<std::uint64_t>(group));
    const RandomPair lower = pair_of(words[0], words[1]);
    const RandomPair upper = pair_of(words[2], words[3]);
    const float numbers[4] = {lower.first, lower.second, upper.first, upper.second};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const std::int64_t i = 4 * group + k - skipped;
      if (i >= 0 && i < n) out[i] = from_float<T>(numbers[k]);
    }
  }
}

/// Two accesses of sizeof(T) an element.
void unary(const UnaryFunction& which, const Tensor& x, const Tensor& y) {
  checks::same("unary", x, y);
  const Device device = y.device();
  const gpu::DeviceGuard guard(device);
  const cudaStream_t stream = gpu::current(device);
  visit_floating("unary", x.dtype(), [&]<class T>() {
    visit_unary(which, [&]<class Function>(Function function) {
      launch_map("unary", stream, x.numel(), out<T>(y), OnFloats<T, Value<Function>>{{function}}, in<T>(x));
    });
  });
}

/// Three accesses of sizeof(T) an element.
void unary_backward(const UnaryFunction& which, const Tensor& at, const Tensor& dy, const Tensor& dx) {
  checks::unary_backward(at, dy, dx);
  const Device device = dx.device();
  const gpu::DeviceGuard guard(device);
  const cudaStream_t stream = gpu::current(device);
  visit_floating("unary_backward", at.dtype(), [&]<class T>() {
    visit_unary(which, [&]<class Function>(Function function) {
      launch_map("unary_backward", stream, at.numel(), out<T>(dx), OnFloats<T, Backward<Function>>{{function}},
                 in<T>(at), in<T>(dy));
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

void random(Distribution distribution, double first_parameter, double second_parameter, const RandomKey& key,
            std::int64_t first_element, const Tensor& out) {
  checks::random(first_element, out);
  const std::int64_t n = out.numel();
  if (n == 0) return;
  const Device device = out.device();
  const gpu::DeviceGuard guard(device);
  visit_floating("random", out.dtype(), [&]<class T>() {
    visit_distribution(distribution, first_parameter, second_parameter, [&](auto pair_of) {
      random_kernel<<<blocks_for(n / 4 + 2), kThreads, 0, gpu::current(device)>>>(n, cuda::out<T>(out), pair_of, key,
                                                                                  first_element);
    });
    check_launch("random");
  });
}

}  // namespace

const Pointwise kPointwise{.unary = unary, .unary_backward = unary_backward, .dropout = dropout, .random = random};

}  // namespace lockstep::kernels::cuda
