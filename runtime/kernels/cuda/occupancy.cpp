// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/occupancy.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>

#include "runtime/tensor/cuda/check.h"

namespace lockstep::kernels::cuda {

std::int64_t resident_blocks(Device device, const void* kernel, int threads) {
  using Key = std::tuple<int, const void*, int>;
  static std::mutex mutex;
  static std::map<Key, std::int64_t>& known = *new std::map<Key, std::int64_t>;
  const std::lock_guard lock(mutex);
  std::int64_t& blocks = known[Key(device.index, kernel, threads)];
  if (blocks > 0) return blocks;
  int multiprocessors = 0, on_each = 0;
  gpu::check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device.index),
             "cudaDeviceGetAttribute");
  gpu::check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&on_each, kernel, threads, 0),
             "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  blocks = std::max<std::int64_t>(static_cast<std::int64_t>(multiprocessors) * on_each, 1);
  return blocks;
}

}  // namespace lockstep::kernels::cuda
