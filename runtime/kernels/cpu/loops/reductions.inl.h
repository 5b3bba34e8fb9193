// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cpu/loops/channels.inl.h"

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {
namespace {

void sum_rows(Input x, std::int64_t rows, std::int64_t channels, float* sums) {
  const Tiling tiling(rows, channels);
  TiledSum total(sums, tiling);
  TileGroupReader x_tiles(x, tiling);
  for_each_tile_group(tiling, [&](auto count, std::int64_t begin, std::int64_t column, std::int64_t n) {
    const auto xs = x_tiles.template read<count>(begin, n);
    float* sum = total.data() + column;
    LOCKSTEP_VECTORIZE for (std::int64_t i = 0; i < n; ++i) {
      float of_group = 0;
      for (const float* tile : xs) of_group += tile[i];
      sum[i] += of_group;
    }
  });
  total.fold();
}

/// Sum over a block of term(i), in as many partial sums as hide the latency of an addition.
template <class Term>
double sum_block(std::int64_t n, Term term) {
  const std::int64_t quarter = n / 4;
  double a = 0, b = 0, c = 0, d = 0;
#pragma omp simd reduction(+ : a, b, c, d)
  for (std::int64_t i = 0; i < quarter; ++i) {
    a += term(i);
    b += term(quarter + i);
    c += term(2 * quarter + i);
    d += term(3 * quarter + i);
  }
  for (std::int64_t i = 4 * quarter; i < n; ++i) a += term(i);
  return (a + b) + (c + d);
}

double sum_of_squares(Input x, std::int64_t total) {
  Reader x_block(x);
  double sum = 0;
  for_each_block(total, [&](std::int64_t begin, std::int64_t n) {
    const float* values = x_block(begin, n);
    sum += sum_block(n, [values](std::int64_t i) {
      const double value = static_cast<double>(values[i]);
      return value * value;
    });
  });
  return sum;
}

bool all_finite(Input x, std::int64_t total) {
  constexpr std::uint32_t kMagnitude = 0x7fffffffu;
  constexpr std::uint32_t kInfinity = 0x7f800000u;
  Reader x_block(x);
  std::uint32_t largest = 0;
  for_each_block(total, [&](std::int64_t begin, std::int64_t n) {
    const float* values = x_block(begin, n);
    for (std::int64_t i = 0; i < n; ++i) {
      largest = std::max(largest, std::bit_cast<std::uint32_t>(values[i]) & kMagnitude);
    }
  });
  return largest < kInfinity;
}

}  // namespace
}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA
