// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cpu/loops/lanes.inl.h"

// Products of small float32 matrices that lie in the cache: c = a b, or c += a b, with any strides of a. Rows of b and
// c are whole vectors long. Sums run over k in order.

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {
namespace {

/// The columns of b and c are padded to a multiple of so many floats, the widest vector.
constexpr std::int64_t kColumnUnit = ProductStrip::kColumns;

/// A tile of c that the registers hold, beside a row of b and an element of a.
/// NEON, of 4 lanes, has as many registers as AVX-512, but elements of a take one each.
constexpr int kTileRows = kLanes == 16 ? 6 : kLanes == 4 ? 5 : 4;
constexpr int kTileLanes = kLanes == 16 || kLanes == 4 ? 4 : kLanes == 8 ? 3 : 2;

/// The element (i, k) of a lies at data[i * row + k * column].
struct LeftFactor {
  const float* data;
  std::int64_t row;
  std::int64_t column;

  LeftFactor below(std::int64_t rows) const { return {data + rows * row, row, column}; }
};

template <int Rows, int Vectors>
[[gnu::always_inline]] inline void multiply_tile(bool add, std::int64_t terms, LeftFactor a, const float* b,
                                                 std::int64_t b_row, float* c, std::int64_t c_row) {
  Lanes sums[Rows][Vectors];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) sums[i][v] = broadcast(0.0f);
  }
  for (std::int64_t k = 0; k < terms; ++k) {
    Lanes row[Vectors];
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) row[v] = load_float(b + v * kLanes);
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
      const Lanes factor = broadcast(a.data[i * a.row]);
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) sums[i][v] = multiply_add(factor, row[v], sums[i][v]);
    }
    a.data += a.column;
    b += b_row;
  }
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) {
      float* const to = c + i * c_row + v * kLanes;
      store_float(to, add ? load_float(to) + sums[i][v] : sums[i][v]);
    }
  }
}

template <int Vectors>
void multiply_columns(bool add, std::int64_t rows, std::int64_t terms, LeftFactor a, const float* b, std::int64_t b_row,
                      float* c, std::int64_t c_row) {
  std::int64_t i = 0;
  const auto tile = [&]<int Rows>(std::integral_constant<int, Rows>) {
    multiply_tile<Rows, Vectors>(add, terms, a.below(i), b, b_row, c + i * c_row, c_row);
    i += Rows;
  };
  while (rows - i >= kTileRows) tile(std::integral_constant<int, kTileRows>());
  if (rows - i >= 4) tile(std::integral_constant<int, 4>());
  if (rows - i >= 2) tile(std::integral_constant<int, 2>());
  if (rows - i >= 1) tile(std::integral_constant<int, 1>());
}

/// c [rows, columns] = a [rows, terms] b [terms, columns], added to c where `add`. `columns` is a multiple of
/// kColumnUnit.
void multiply_matrices(bool add, std::int64_t rows, std::int64_t columns, std::int64_t terms, LeftFactor a,
                       const float* b, std::int64_t b_row, float* c, std::int64_t c_row) {
  std::int64_t j = 0;
  const auto panel = [&]<int Vectors>(std::integral_constant<int, Vectors>) {
    multiply_columns<Vectors>(add, rows, terms, a, b + j, b_row, c + j, c_row);
    j += Vectors * kLanes;
  };
  while (columns - j >= kTileLanes * kLanes) panel(std::integral_constant<int, kTileLanes>());
  if (columns - j >= 2 * kLanes) panel(std::integral_constant<int, 2>());
  if (columns - j >= kLanes) panel(std::integral_constant<int, 1>());
}

void multiply_strip(const ProductStrip& strip) {
  multiply_matrices(strip.add, strip.rows, ProductStrip::kColumns, strip.terms, {strip.a, strip.a_row, strip.a_column},
                    strip.b, ProductStrip::kColumns, strip.c, strip.c_row);
}

}  // namespace
}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA
