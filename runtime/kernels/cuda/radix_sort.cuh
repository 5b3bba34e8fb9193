// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cub/device/device_radix_sort.cuh>

#include "runtime/kernels/cuda/launch.cuh"

namespace lockstep::kernels::cuda {

struct Sorted {
  Tensor keys;
  Tensor values;
};

/// Keys [n], of Key's size, and int64 values [n], which go with them, in ascending order of the keys' lowest `bits`.
/// Equal keys keep their order. Runs on the current stream; the device is the current one.
template <class Key>
Sorted radix_sort(const char* operation, const Tensor& keys, const Tensor& values, int bits) {
  const Device device = keys.device();
  const Sorted sorted{Tensor::empty(keys.shape(), keys.dtype(), device),
                      Tensor::empty(values.shape(), values.dtype(), device)};
  std::size_t bytes = 0;
  const auto sort = [&](void* memory) {
    gpu::check(
        cub::DeviceRadixSort::SortPairs(memory, bytes, in<Key>(keys), out<Key>(sorted.keys), in<std::int64_t>(values),
                                        out<std::int64_t>(sorted.values), keys.numel(), 0, bits, gpu::current(device)),
        operation);
  };
  // Without memory it tells how many bytes it needs.
  sort(nullptr);
  const Tensor memory =
      Tensor::empty({static_cast<std::int64_t>(std::max<std::size_t>(bytes, 1))}, DType::kUInt8, device);
  sort(memory.data());
  return sorted;
}

}  // namespace lockstep::kernels::cuda
