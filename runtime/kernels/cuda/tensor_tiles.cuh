// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mma.h>

#include "runtime/kernels/cuda/values.cuh"

// Products of 16-bit matrices on tensor cores, by warps: operands in shared memory, sums of float32 in fragments, whose
// elements lie where only the hardware knows. Every function is for all lanes of a warp, and none waits: a lane that
// reads what another wrote needs __syncwarp() between them.

namespace lockstep::kernels::cuda {

/// Rows and columns of the matrices that tensor cores multiply.
constexpr int kEdge = 16;

template <class T>
using Native = std::conditional_t<std::is_same_v<T, Half>, __half, __nv_bfloat16>;

namespace wmma = nvcuda::wmma;
template <class T, class Layout>
using LeftFragment = wmma::fragment<wmma::matrix_a, kEdge, kEdge, kEdge, Native<T>, Layout>;
template <class T, class Layout>
using RightFragment = wmma::fragment<wmma::matrix_b, kEdge, kEdge, kEdge, Native<T>, Layout>;
using Sums = wmma::fragment<wmma::accumulator, kEdge, kEdge, kEdge, float>;

/// Whether the GPUs that are compiled for multiply T. CUDA defines fragments of bfloat16 from compute capability 8.0
/// on.
template <class T>
concept Multiplied = requires {
  sizeof(LeftFragment<T, wmma::row_major>);
};

__device__ inline int warp_lane() { return static_cast<int>(threadIdx.x % kWarp); }

/// Rows of 16-bit numbers that a block shares. Eight numbers more a row keep the rows of a fragment off one another's
/// banks.
template <class T, int Rows, int Width>
struct alignas(32) SharedRows {
  static constexpr int kStride = Width + 8;
  Native<T> values[Rows * kStride];

  __device__ Native<T>* at(int row, int column) { return values + row * kStride + column; }
  __device__ const Native<T>* at(int row, int column) const { return values + row * kStride + column; }
};

/// 512 numbers of a warp: float32, or in their place 16-bit ones. A lane owns 16 neighbours of a row.
template <class T, int Rows, int Columns>
struct alignas(32) WarpTile {
  static_assert(Rows * Columns == kWarp * kEdge);
  static constexpr int kStride = Columns + 4;
  static constexpr int kNarrowStride = Columns + 8;
  static_assert(kNarrowStride * sizeof(T) <= kStride * sizeof(float));
  float values[Rows * kStride];

  __device__ static int own_row() { return warp_lane() * kEdge / Columns; }
  __device__ static int own_column() { return warp_lane() * kEdge % Columns; }
  __device__ float* at(int row, int column) { return values + row * kStride + column; }
  __device__ Native<T>* narrow_at(int row, int column) {
    return reinterpret_cast<Native<T>*>(values) + row * kNarrowStride + column;
  }

  __device__ void read(float (&own)[kEdge]) {
#pragma unroll
    for (int i = 0; i < kEdge; i += 4) {
      const auto four = load<4>(at(own_row(), own_column() + i));
#pragma unroll
      for (int j = 0; j < 4; ++j) own[i + j] = four.values[j];
    }
  }
  /// As 16-bit numbers, over the others: once all lanes have read those.
  __device__ void write(const float (&own)[kEdge]) {
#pragma unroll
    for (int i = 0; i < kEdge; i += 8) {
      Values<T, 8> eight;
#pragma unroll
      for (int j = 0; j < 8; ++j) eight.values[j] = from_float<T>(own[i + j]);
      store(eight, reinterpret_cast<T*>(narrow_at(own_row(), own_column() + i)));
    }
  }
};

/// products = rows of `left` from left_row on . rows of `right` from right_row on.
template <class T, int Rows, int Columns, int LeftRows, int RightRows, int Width>
__device__ void multiply_rows(const SharedRows<T, LeftRows, Width>& left, int left_row,
                              const SharedRows<T, RightRows, Width>& right, int right_row,
                              WarpTile<T, Rows, Columns>& products) {
  constexpr int kDown = Rows / kEdge, kAcross = Columns / kEdge;
  Sums sums[kDown][kAcross];
#pragma unroll
  for (int i = 0; i < kDown; ++i) {
#pragma unroll
    for (int j = 0; j < kAcross; ++j) wmma::fill_fragment(sums[i][j], 0.0f);
  }
#pragma unroll
  for (int channel = 0; channel < Width; channel += kEdge) {
    LeftFragment<T, wmma::row_major> lefts[kDown];
    RightFragment<T, wmma::col_major> rights[kAcross];
#pragma unroll
    for (int i = 0; i < kDown; ++i)
      wmma::load_matrix_sync(lefts[i], left.at(left_row + i * kEdge, channel), left.kStride);
#pragma unroll
    for (int j = 0; j < kAcross; ++j) {
      wmma::load_matrix_sync(rights[j], right.at(right_row + j * kEdge, channel), right.kStride);
    }
#pragma unroll
    for (int i = 0; i < kDown; ++i) {
#pragma unroll
      for (int j = 0; j < kAcross; ++j) wmma::mma_sync(sums[i][j], lefts[i], rights[j], sums[i][j]);
    }
  }
#pragma unroll
  for (int i = 0; i < kDown; ++i) {
#pragma unroll
    for (int j = 0; j < kAcross; ++j) {
      wmma::store_matrix_sync(products.at(i * kEdge, j * kEdge), sums[i][j], products.kStride, wmma::mem_row_major);
    }
  }
}

/// sums[m] += the 16-bit weights . channels [16 m, 16 m + 16) of 32 rows: a row of 16 x 32 weights, or a column of
/// 32 x 16, has those of a row of sums.
template <class T, int Rows, int Columns, int Width>
__device__ void add_products(WarpTile<T, Rows, Columns>& weights, const SharedRows<T, 2 * kEdge, Width>& rows,
                             Sums (&sums)[Width / kEdge]) {
  constexpr bool kUpright = Rows == kEdge;
#pragma unroll
  for (int row = 0; row < 2 * kEdge; row += kEdge) {
    LeftFragment<T, std::conditional_t<kUpright, wmma::row_major, wmma::col_major>> left;
    wmma::load_matrix_sync(left, kUpright ? weights.narrow_at(0, row) : weights.narrow_at(row, 0),
                           weights.kNarrowStride);
#pragma unroll
    for (int m = 0; m < Width / kEdge; ++m) {
      RightFragment<T, wmma::row_major> right;
      wmma::load_matrix_sync(right, rows.at(row, m * kEdge), rows.kStride);
      wmma::mma_sync(sums[m], left, right, sums[m]);
    }
  }
}

template <int Count>
__device__ void clear_sums(Sums (&sums)[Count]) {
#pragma unroll
  for (Sums& of : sums) wmma::fill_fragment(of, 0.0f);
}

}  // namespace lockstep::kernels::cuda
