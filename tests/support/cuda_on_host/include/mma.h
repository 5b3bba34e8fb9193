// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "runtime/base/error.h"

// CUDA's products of 16 x 16 matrices by a warp. Of sums and of left operands a lane has the row lane / 2, of sums and
// of right operands eight columns. No function waits for other lanes: what one reads before another wrote it shows.

namespace nvcuda::wmma {

struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
struct col_major {};
enum layout_t { mem_row_major, mem_col_major };

constexpr unsigned kExtent = 16;
constexpr unsigned kOwnColumns = 8;
inline unsigned own_row() { return ::lockstep::cuda_on_host::lane() / 2; }
inline unsigned own_column() { return ::lockstep::cuda_on_host::lane() % 2 * kOwnColumns; }

template <class Use, int M, int N, int K, class T, class Layout = void>
struct fragment;
template <class T, class Layout>
struct fragment<matrix_a, 16, 16, 16, T, Layout> {
  float row[kExtent];
};
template <class T, class Layout>
struct fragment<matrix_b, 16, 16, 16, T, Layout> {
  float rows[kExtent][kOwnColumns];
};
template <>
struct fragment<accumulator, 16, 16, 16, float, void> {
  static constexpr int num_elements = kOwnColumns;
  float x[num_elements];
};

inline float widened(float value) { return value; }
inline float widened(__half value) { return __half2float(value); }
inline float widened(__nv_bfloat16 value) { return __bfloat162float(value); }

template <class T>
void require_layout(const T* data, unsigned stride) {
  if (reinterpret_cast<std::uintptr_t>(data) % 32 != 0 || stride * sizeof(T) % 16 != 0 || stride < kExtent) {
    throw lockstep::UsageError("a matrix for tensor cores at " +
                               std::to_string(reinterpret_cast<std::uintptr_t>(data)) + " with rows of " +
                               std::to_string(stride));
  }
}

template <class T>
T& element(T* data, unsigned stride, bool by_rows, unsigned row, unsigned column) {
  return by_rows ? data[row * stride + column] : data[column * stride + row];
}

template <class T, class Layout>
void load_matrix_sync(fragment<matrix_a, 16, 16, 16, T, Layout>& left, const T* data, unsigned stride) {
  require_layout(data, stride);
  constexpr bool kByRows = std::is_same_v<Layout, row_major>;
  for (unsigned k = 0; k < kExtent; ++k) left.row[k] = widened(element(data, stride, kByRows, own_row(), k));
}
template <class T, class Layout>
void load_matrix_sync(fragment<matrix_b, 16, 16, 16, T, Layout>& right, const T* data, unsigned stride) {
  require_layout(data, stride);
  constexpr bool kByRows = std::is_same_v<Layout, row_major>;
  for (unsigned k = 0; k < kExtent; ++k) {
    for (unsigned i = 0; i < kOwnColumns; ++i) {
      right.rows[k][i] = widened(element(data, stride, kByRows, k, own_column() + i));
    }
  }
}

using Sums = fragment<accumulator, 16, 16, 16, float>;

inline void load_matrix_sync(Sums& sums, const float* data, unsigned stride, layout_t layout) {
  require_layout(data, stride);
  for (unsigned i = 0; i < kOwnColumns; ++i) {
    sums.x[i] = element(data, stride, layout == mem_row_major, own_row(), own_column() + i);
  }
}
inline void store_matrix_sync(float* data, const Sums& sums, unsigned stride, layout_t layout) {
  require_layout(data, stride);
  for (unsigned i = 0; i < kOwnColumns; ++i) {
    element(data, stride, layout == mem_row_major, own_row(), own_column() + i) = sums.x[i];
  }
}
inline void fill_fragment(Sums& sums, float value) {
  for (float& x : sums.x) x = value;
}

template <class T, class LeftLayout, class RightLayout>
void mma_sync(Sums& result, const fragment<matrix_a, 16, 16, 16, T, LeftLayout>& left,
              const fragment<matrix_b, 16, 16, 16, T, RightLayout>& right, const Sums& sums) {
  for (unsigned i = 0; i < kOwnColumns; ++i) {
    float sum = sums.x[i];
    for (unsigned k = 0; k < kExtent; ++k) sum += left.row[k] * right.rows[k][i];
    result.x[i] = sum;
  }
}

}  // namespace nvcuda::wmma
