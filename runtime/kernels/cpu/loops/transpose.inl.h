// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cpu/loops/lanes.inl.h"

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {
namespace {

/// 16 bytes of T: what every processor of the family has, and wide enough for memory to be what is waited for.
template <class T>
struct Quarter {
  static constexpr int kCount = 16 / sizeof(T);
  using Vector [[gnu::vector_size(16)]] = T;
};

/// The lower halves of two vectors, element for element in turn, or the upper ones.
template <class T, std::size_t... I>
typename Quarter<T>::Vector interleave(typename Quarter<T>::Vector a, typename Quarter<T>::Vector b, bool upper,
                                       std::index_sequence<I...>) {
  constexpr int n = Quarter<T>::kCount;
  return upper ? __builtin_shufflevector(a, b, (n / 2 + static_cast<int>(I) / 2 + (I % 2 == 0 ? 0 : n))...)
               : __builtin_shufflevector(a, b, (static_cast<int>(I) / 2 + (I % 2 == 0 ? 0 : n))...);
}

/// Transposes kCount vectors of kCount elements in place: log2(kCount) perfect shuffles.
template <class T>
void transpose_vectors(typename Quarter<T>::Vector (&rows)[Quarter<T>::kCount]) {
  constexpr int n = Quarter<T>::kCount;
  constexpr std::make_index_sequence<n> each;
  for (int done = 1; done < n; done *= 2) {
    typename Quarter<T>::Vector next[n];
    for (int i = 0; i < n / 2; ++i) {
      next[2 * i] = interleave<T>(rows[i], rows[i + n / 2], false, each);
      next[2 * i + 1] = interleave<T>(rows[i], rows[i + n / 2], true, each);
    }
    for (int i = 0; i < n; ++i) rows[i] = next[i];
  }
}

/// A square whose rows are cache lines. Each line of `in` is read once and at once, each of `out` filled at once:
/// strides of a power of two, whose lines share a place in the cache, do no harm. Where all lines of `out` share one
/// place of the first-level cache, even the four that are filled side by side are too many.
template <class T>
void transpose_tile(const T* in, std::int64_t in_stride, T* out, std::int64_t out_stride) {
  constexpr int n = Quarter<T>::kCount;
  constexpr int tile = 4 * n;
  alignas(64) T lines[tile][tile];
  alignas(64) T turned[tile][tile];
  constexpr std::int64_t kCachePlaces = 4096;  // bytes
  const bool line_by_line = out_stride * static_cast<std::int64_t>(sizeof(T)) % kCachePlaces == 0;
  T* const to = line_by_line ? turned[0] : out;
  const std::int64_t stride = line_by_line ? tile : out_stride;
  for (int r = 0; r < tile; ++r) std::memcpy(lines[r], in + r * in_stride, sizeof(lines[r]));
  for (int c = 0; c < tile; c += n) {
    for (int r = 0; r < tile; r += n) {
      typename Quarter<T>::Vector rows[n];
      for (int i = 0; i < n; ++i) std::memcpy(&rows[i], &lines[r + i][c], sizeof(rows[i]));
      transpose_vectors<T>(rows);
      for (int i = 0; i < n; ++i) std::memcpy(to + (c + i) * stride + r, &rows[i], sizeof(rows[i]));
    }
  }
  if (!line_by_line) return;
  for (int c = 0; c < tile; ++c) std::memcpy(out + c * out_stride, turned[c], sizeof(turned[c]));
}

template <class T>
void transpose_elements(const T* in, std::int64_t in_stride, T* out, std::int64_t out_stride, std::int64_t rows,
                        std::int64_t columns) {
  // Rows at a time: the lines of `in`, which each column walks over again, then stay in the cache.
  constexpr std::int64_t kRows = 256;
  for (std::int64_t begin = 0; begin < rows; begin += kRows) {
    const std::int64_t end = std::min(begin + kRows, rows);
    for (std::int64_t c = 0; c < columns; ++c) {
      for (std::int64_t r = begin; r < end; ++r) out[c * out_stride + r] = in[r * in_stride + c];
    }
  }
}

template <class T>
void transpose_of(const T* in, std::int64_t in_stride, T* out, std::int64_t out_stride, std::int64_t rows,
                  std::int64_t columns) {
  constexpr std::int64_t tile = 4 * Quarter<T>::kCount;
  // A block touches no more pages than the processor keeps translations of.
  constexpr std::int64_t block = 4 * tile;
  const std::int64_t whole_rows = rows / tile * tile;
  const std::int64_t whole_columns = columns / tile * tile;
  for (std::int64_t r0 = 0; r0 < whole_rows; r0 += block) {
    for (std::int64_t c0 = 0; c0 < whole_columns; c0 += block) {
      for (std::int64_t r = r0; r < std::min(r0 + block, whole_rows); r += tile) {
        for (std::int64_t c = c0; c < std::min(c0 + block, whole_columns); c += tile) {
          transpose_tile(in + r * in_stride + c, in_stride, out + c * out_stride + r, out_stride);
        }
      }
    }
  }
  transpose_elements(in + whole_columns, in_stride, out + whole_columns * out_stride, out_stride, whole_rows,
                     columns - whole_columns);
  transpose_elements(in + whole_rows * in_stride, in_stride, out + whole_rows, out_stride, rows - whole_rows, columns);
}

void transpose(const void* in, std::int64_t in_stride, void* out, std::int64_t out_stride, std::int64_t rows,
               std::int64_t columns, std::size_t bytes) {
  visit_element(bytes, [&]<class T>(T) {
    transpose_of(static_cast<const T*>(in), in_stride, static_cast<T*>(out), out_stride, rows, columns);
  });
}

}  // namespace
}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA
