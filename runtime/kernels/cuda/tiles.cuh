// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cuda/launch.cuh"
#include "runtime/kernels/cuda/segment_tables.h"

namespace lockstep::kernels::cuda {

/// Calls f.template operator()<W>(at), or <1>, for the elements of a tile, in the block's threads together: groups of W
/// where the slice is aligned, which begin at multiples of W of the slice, and single elements before and behind them.
template <int W, class F>
__device__ void for_each_group(const Tile& tile, bool is_aligned, F&& f) {
  const std::int64_t end = tile.begin + tile.count;
  std::int64_t from = end;
  std::int64_t to = end;
  if (is_aligned) {
    from = min((tile.begin + W - 1) / W * W, end);
    to = max(end / W * W, from);
  }
#pragma unroll 2
  for (std::int64_t at = from + threadIdx.x * W; at < to; at += kThreads * W) f.template operator()<W>(at);
#pragma unroll 1
  for (std::int64_t at = tile.begin + threadIdx.x; at < from; at += kThreads) f.template operator()<1>(at);
#pragma unroll 1
  for (std::int64_t at = to + threadIdx.x; at < end; at += kThreads) f.template operator()<1>(at);
}

}  // namespace lockstep::kernels::cuda
