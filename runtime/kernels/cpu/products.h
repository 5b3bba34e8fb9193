// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/kernels/cpu/loops/loops.h"
#include "runtime/kernels/cpu/parallel.h"
#include "runtime/kernels/cpu/thread_buffers.h"

// float32 matrix products by the loops, for where oneDNN has only plain ones (processor.h). The results are cut into
// blocks, each of them one thread's; the order of a sum depends on nothing but its length.

namespace lockstep::kernels::cpu {

/// The element (i, j) lies at data[i * row + j * column].
struct StridedMatrix {
  const float* data;
  std::int64_t row;
  std::int64_t column;

  StridedMatrix at(std::int64_t i, std::int64_t j) const { return {data + i * row + j * column, row, column}; }
};

/// The bounds of a block of the result and of the terms that are summed at a time. Such parts of both factors stay in
/// the second-level cache.
struct ProductBlock {
  static constexpr std::int64_t kRows = 120;  // of whole tiles of 4, 5 or 6
  static constexpr std::int64_t kColumns = 64;
  static constexpr std::int64_t kTerms = 256;
  static constexpr std::int64_t kStrip = ProductStrip::kColumns;
};

/// Writes [terms, columns] of a strided matrix as strips of kStrip columns, padded by zeros, one behind the other.
inline void pack_strips(const StridedMatrix& from, std::int64_t terms, std::int64_t columns, float* strips) {
  constexpr std::int64_t kStrip = ProductBlock::kStrip;
  for (std::int64_t j = 0; j < columns; j += kStrip) {
    const std::int64_t width = std::min(kStrip, columns - j);
    for (std::int64_t k = 0; k < terms; ++k, strips += kStrip) {
      const StridedMatrix line = from.at(k, j);
      for (std::int64_t c = 0; c < width; ++c) strips[c] = line.data[c * line.column];
      std::fill(strips + width, strips + kStrip, 0.0f);
    }
  }
}

/// pack_strips() for a matrix whose lines are computed: line(k, begin, n, out) writes n elements of line k.
template <class Line>
void pack_lines(Line line, std::int64_t first_term, std::int64_t terms, std::int64_t first_column, std::int64_t columns,
                float* strips) {
  constexpr std::int64_t kStrip = ProductBlock::kStrip;
  float whole[ProductBlock::kColumns] = {};
  for (std::int64_t k = 0; k < terms; ++k) {
    line(first_term + k, first_column, columns, whole);
    for (std::int64_t j = 0; j < columns; j += kStrip) {
      std::copy_n(whole + j, kStrip, strips + j * terms + k * kStrip);
    }
  }
}

/// The number of products, and the extents of their factors: [rows, terms] and [terms, columns].
struct ProductExtents {
  std::int64_t products;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t terms;
};

/// Sums over `terms` products for each element of results [rows, columns].
///
/// left(product, first_row, rows, first_term, terms, room) gives that part of a left factor as a StridedMatrix, in
/// `room` for kRows x kTerms elements if it has to be made; right(product, first_term, terms, first_column, columns,
/// strips) writes that part of a right one as pack_strips does; store(product, row, first_column, columns, sums) takes
/// a line of a result. None of them may throw.
template <class Left, class Right, class Store>
void multiply(const ProductExtents& extents, Left left, Right right, Store store) {
  using Block = ProductBlock;
  constexpr std::int64_t kSums = Block::kRows * Block::kColumns;
  constexpr std::int64_t kStrips = Block::kTerms * Block::kColumns;
  const auto [products, rows, columns, terms] = extents;
  const std::int64_t across = (columns + Block::kColumns - 1) / Block::kColumns;
  const std::int64_t blocks = (rows + Block::kRows - 1) / Block::kRows * across;
  const ThreadBuffers buffers(kSums + kStrips + Block::kRows * Block::kTerms);
  const auto multiply_blocks = [&, rows = rows, columns = columns, terms = terms](std::int64_t begin,
                                                                                  std::int64_t end) {
    float* const sums = buffers.mine();
    float* const strips = sums + kSums;
    float* const room = strips + kStrips;
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t product = task / blocks;
      const std::int64_t block = task % blocks;
      const std::int64_t i = block / across * Block::kRows;
      const std::int64_t j = block % across * Block::kColumns;
      const std::int64_t height = std::min(Block::kRows, rows - i);
      const std::int64_t width = std::min(Block::kColumns, columns - j);
      for (std::int64_t k = 0; k < terms; k += Block::kTerms) {
        const std::int64_t depth = std::min(Block::kTerms, terms - k);
        right(product, k, depth, j, width, strips);
        const StridedMatrix a = left(product, i, height, k, depth, room);
        for (std::int64_t strip = 0; strip < width; strip += Block::kStrip) {
          loops().multiply_strip({.add = k > 0,
                                  .rows = height,
                                  .terms = depth,
                                  .a = a.data,
                                  .a_row = a.row,
                                  .a_column = a.column,
                                  .b = strips + strip * depth,
                                  .c = sums + strip,
                                  .c_row = Block::kColumns});
        }
      }
      for (std::int64_t r = 0; r < height; ++r) store(product, i + r, j, width, sums + r * Block::kColumns);
    }
  };
  parallel_ranges(products * blocks, 1, multiply_blocks);
}

}  // namespace lockstep::kernels::cpu
