// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "cuda_runtime_api.h"
#include "runtime/tensor/gpu.h"
#include "tests/support/emulated_gpu/emulation.h"

namespace cub {

struct DeviceRadixSort {
  /// Stable, by the bits [begin, end) of the keys. Without memory it says how much it needs.
  template <class Key, class Value>
  static cudaError_t SortPairs(void* memory, std::size_t& bytes, const Key* keys, Key* sorted, const Value* values,
                               Value* sorted_values, std::int64_t count, int begin, int end, cudaStream_t stream) {
    if (memory == nullptr) {
      bytes = 1;
      return cudaSuccess;
    }
    using namespace lockstep::gpu;
    lockstep::cuda_on_host::require_current(stream);
    emulation::append(current_stream(emulation::device()), [=] {
      const auto bits = [=](std::int64_t i) {
        const std::uint64_t low = end == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << end) - 1;
        return (static_cast<std::uint64_t>(keys[i]) & low) >> begin;
      };
      std::vector<std::int64_t> order(static_cast<std::size_t>(count));
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) { return bits(a) < bits(b); });
      for (std::int64_t i = 0; i < count; ++i) {
        sorted[i] = keys[order[static_cast<std::size_t>(i)]];
        sorted_values[i] = values[order[static_cast<std::size_t>(i)]];
      }
    });
    return cudaSuccess;
  }
};

}  // namespace cub
