// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cuda/launch.cuh"

// Neighbouring elements that a thread moves in one access.

namespace lockstep::kernels::cuda {

template <class T, int W>
struct alignas(W * sizeof(T) < 16 ? W * sizeof(T) : 16) Values {
  T values[W];
};

/// W elements from `from` on, which must be aligned for them.
template <int W, class T>
__device__ Values<T, W> load(const T* from) {
  return *reinterpret_cast<const Values<T, W>*>(from);
}

template <int W, class T>
__device__ void store(const Values<T, W>& values, T* to) {
  *reinterpret_cast<Values<T, W>*>(to) = values;
}

/// Calls f.template operator()<T, W>(): elements of the floating dtype, and W of them in 16 bytes where rows of so many
/// `channels` that begin at `pointers` allow it, else 1.
template <class F, class... Pointers>
void visit_channels(std::string_view operation, DType dtype, std::int64_t channels, F&& f,
                    const Pointers*... pointers) {
  visit_floating(operation, dtype, [&]<class T>() {
    constexpr int kWide = Pack<T>::kSize;
    if (channels % kWide == 0 && aligned(pointers...)) {
      f.template operator()<T, kWide>();
    } else {
      f.template operator()<T, 1>();
    }
  });
}

}  // namespace lockstep::kernels::cuda
