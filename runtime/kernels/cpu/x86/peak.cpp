// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cpu/peak.h"

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <iterator>

#include "runtime/kernels/cpu/isa.h"
#include "runtime/kernels/cpu/processor.h"

namespace lockstep::kernels::cpu {

namespace {

using Lanes8 = float __attribute__((vector_size(32)));
using Lanes16 = float __attribute__((vector_size(64)));

// Each has the instructions of its caller: clang refuses the register of a function without them.
struct Keep8 {
  [[gnu::target("avx2,fma")]] void operator()(Lanes8& sum) const { asm volatile("" : "+v"(sum)); }
};
struct Keep16 {
  [[gnu::target("avx512f,fma")]] void operator()(Lanes16& sum) const { asm volatile("" : "+v"(sum)); }
};

[[gnu::target("avx2,fma")]] float avx2_rounds(float factor) { return multiply_add_rounds<Lanes8>(factor, Keep8()); }
[[gnu::target("avx512f,fma")]] float avx512_rounds(float factor) {
  return multiply_add_rounds<Lanes16>(factor, Keep16());
}

/// Each product adds 32 pairs to 16 sums.
[[gnu::target("avx512f,avx512bf16")]] float avx512_bf16_rounds(float factor) {
  const __m512bh factors = _mm512_cvtne2ps_pbh(_mm512_set1_ps(factor), _mm512_set1_ps(factor));
  __m512 sums[kPeakSums];
  for (__m512& sum : sums) sum = _mm512_setzero_ps();
  for (int round = 0; round < kPeakRounds; ++round) {
#pragma GCC unroll 16
    for (int i = 0; i < kPeakSums; ++i) {
      sums[i] = _mm512_dpbf16_ps(sums[i], factors, factors);
      asm volatile("" : "+v"(sums[i]));
    }
  }
  __m512 total = _mm512_setzero_ps();
  for (const __m512& sum : sums) total = _mm512_add_ps(total, sum);
  return _mm512_cvtss_f32(total);
}

/// As the instruction that configures tiles reads it.
struct TileLayout {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
constexpr int kTileSums = 4;

/// Two tiles of 16 x 32 factors by two of 32 x 16, into four of 16 x 16 sums.
[[gnu::target("avx512f,amx-tile,amx-bf16")]] float tile_rounds(float factor) {
  alignas(64) static constexpr TileLayout kLayout;
  alignas(64) std::uint16_t factors[16 * 32];
  std::fill(std::begin(factors), std::end(factors),
            static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(factor) >> 16));
  // The compiler does not know that tiles are loaded from memory.
  asm volatile("" ::: "memory");
  _tile_loadconfig(&kLayout);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_loadd(4, factors, 64);
  _tile_loadd(5, factors, 64);
  _tile_loadd(6, factors, 64);
  _tile_loadd(7, factors, 64);
  for (int round = 0; round < kPeakRounds; ++round) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  alignas(64) float sums[16 * 16];
  _tile_stored(0, sums, 64);
  _tile_release();
  return sums[0];
}

}  // namespace

Peak float32_peak() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f")) return peak_of<Lanes16>(avx512_rounds);
  if (__builtin_cpu_supports("avx2")) return peak_of<Lanes8>(avx2_rounds);
  return {nullptr, 0};
}

Peak bfloat16_peak() {
  __builtin_cpu_init();
  // The system lets a process use tiles that asks for them, as oneDNN does.
  if (has_bfloat16_tiles()) return {tile_rounds, 2.0 * kPeakRounds * kTileSums * 16 * 16 * 32};
  if (!__builtin_cpu_supports("avx512f") || !has_bfloat16_instructions()) return {nullptr, 0};
  return {avx512_bf16_rounds, 2.0 * kPeakRounds * kPeakSums * 32};
}

}  // namespace lockstep::kernels::cpu
