// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cuda/attention_operands.cuh"
#include "runtime/kernels/cuda/attention_tiles.h"
#include "runtime/kernels/cuda/tensor_tiles.cuh"

// The passes of attention on tensor cores share these tiles. A warp owns 16 rows of the results. It computes 16 rows
// and 32 columns of the scores at a time. The block that owns rows walks over the columns in order, so that no two
// blocks add to one result.

namespace lockstep::kernels::cuda {

constexpr std::int64_t kMaxTileChannels = 128;
/// Columns of the scores that a block works on at a time.
constexpr int kColumns = 2 * kEdge;

/// How a block works on rows of up to Width channels: what it shares stays within the 48 KiB that any GPU gives.
template <int Width>
struct TileBlock {
  static constexpr int kWarps = Width <= 64 ? 4 : 2;
  static constexpr int kThreads = kWarps * kWarp;
  static constexpr int kRows = kWarps * kEdge;

  __device__ static int warp() { return static_cast<int>(threadIdx.x) / kWarp; }
  __device__ static int own_row() { return warp() * kEdge; }
  static __host__ __device__ std::int64_t blocks_of(std::int64_t rows) { return (rows + kRows - 1) / kRows; }
};

/// Whether eight channels can be read or written at once.
template <class T>
__device__ bool is_wide(const HeadRows<T>& rows) {
  return rows.channels % 8 == 0 && rows.step % 8 == 0 && reinterpret_cast<std::uintptr_t>(rows.data) % 16 == 0;
}

/// Rows from `first` on; zeros where there is no such row or channel. All threads of the block load.
template <class T, int Rows, int Width>
__device__ void load_rows(SharedRows<T, Rows, Width>& tile, const HeadRows<const T>& rows, std::int64_t first) {
  const bool wide = is_wide(rows);
  for (int i = static_cast<int>(threadIdx.x) * 8; i < Rows * Width; i += static_cast<int>(blockDim.x) * 8) {
    const std::int64_t row = first + i / Width, channel = i % Width;
    const T* const from = rows.at(row, channel);
    Values<T, 8> eight;
#pragma unroll
    for (T& value : eight.values) value = from_float<T>(0.0f);
    if (row < rows.count && wide) {
      if (channel < rows.channels) eight = load<8>(from);
    } else if (row < rows.count) {
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        if (channel + j < rows.channels) eight.values[j] = from[j];
      }
    }
    store(eight, reinterpret_cast<T*>(tile.at(i / Width, i % Width)));
  }
}

/// Writes the warp's sums to a head's rows from `first` on, times `factor`, which is of row `lane / 2` of them.
/// `scratch`: the warp's own.
template <class T, class Tile, int Fragments>
__device__ void store_sums(const Sums (&sums)[Fragments], Tile& scratch, const HeadRows<T>& rows, std::int64_t first,
                           float factor) {
  const int row = warp_lane() / 2, half = warp_lane() % 2 * 8;
  const bool wide = is_wide(rows);
  T* const to = rows.at(first + row, 0);
#pragma unroll
  for (int m = 0; m < Fragments; ++m) {
    __syncwarp();
    wmma::store_matrix_sync(scratch.values, sums[m], kEdge + 4, wmma::mem_row_major);
    __syncwarp();
    Values<T, 8> eight;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      eight.values[j] = from_float<T>(scratch.values[row * (kEdge + 4) + half + j] * factor);
    }
    const std::int64_t channel = m * kEdge + half;
    if (first + row >= rows.count) continue;
    if (wide) {
      if (channel < rows.channels) store(eight, to + channel);
    } else {
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        if (channel + j < rows.channels) to[channel + j] = eight.values[j];
      }
    }
  }
}

/// Calls f.template operator()<T, Width>(): elements of the 16-bit dtype, and the channels that a tile has.
template <class F>
void visit_tiles(DType dtype, const checks::AttentionExtents& extents, F&& f) {
  const std::int64_t channels = std::max(extents.channels, extents.value_channels);
  const auto visit_width = [&]<class T>() {
    if (channels <= 32) return f.template operator()<T, 32>();
    if (channels <= 64) return f.template operator()<T, 64>();
    f.template operator()<T, 128>();
  };
  if (dtype == DType::kFloat16) return visit_width.template operator()<Half>();
  visit_width.template operator()<BFloat16>();
}

}  // namespace lockstep::kernels::cuda
