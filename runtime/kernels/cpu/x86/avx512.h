// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <immintrin.h>

#include "runtime/kernels/cpu/loops/prelude.h"

LOCKSTEP_BEGIN_TARGET("avx512f,avx512bw,avx512dq,avx512vl,fma,f16c")

#define LOCKSTEP_ISA avx512
#define LOCKSTEP_END_ISA LOCKSTEP_END_TARGET

#include "runtime/kernels/cpu/x86/sum_of_lanes.inl.h"

namespace lockstep::kernels::cpu::avx512 {
namespace {

/// A vector register of float32.
using Lanes = __m512;
constexpr std::int64_t kLanes = 16;

// The forms without a mask make GCC 12 warn of an uninitialised value in its own header.
constexpr __mmask16 kAll = 0xffff;

Lanes load_float(const float* in) { return _mm512_loadu_ps(in); }
void store_float(float* out, Lanes x) { _mm512_storeu_ps(out, x); }
void stream_float(float* out, Lanes x) { _mm512_stream_ps(out, x); }
Lanes broadcast(float x) { return _mm512_set1_ps(x); }
/// a * b + c, rounded once.
Lanes multiply_add(Lanes a, Lanes b, Lanes c) { return _mm512_fmadd_ps(a, b, c); }

/// The halves of the vector are added, then those of their sum, and so on.
float sum_of_lanes(Lanes x) {
  return sum_of_lanes(_mm512_maskz_extractf32x8_ps(0xff, x, 0) + _mm512_maskz_extractf32x8_ps(0xff, x, 1));
}

__m256i load_bits(const std::uint16_t* in) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in)); }
void store_bits(std::uint16_t* out, __m256i bits) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), bits); }
void stream_bits(std::uint16_t* out, __m256i bits) { _mm256_stream_si256(reinterpret_cast<__m256i*>(out), bits); }

Lanes load_half(const std::uint16_t* in) { return _mm512_maskz_cvtph_ps(kAll, load_bits(in)); }
__m256i half_bits(Lanes x) { return _mm512_maskz_cvtps_ph(kAll, x, _MM_FROUND_TO_NEAREST_INT); }

Lanes load_bfloat16(const std::uint16_t* in) {
  return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(kAll, _mm512_maskz_cvtepu16_epi32(kAll, load_bits(in)), 16));
}

/// float_to_bfloat16_bits. The instructions of AVX512_BF16 would take subnormal numbers for 0.
__m256i bfloat16_bits(Lanes x) {
  const __m512i bits = _mm512_castps_si512(x);
  const __m512i odd = _mm512_and_si512(_mm512_maskz_srli_epi32(kAll, bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
  const __mmask16 is_nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  const __m512i chosen = _mm512_mask_or_epi32(rounded, is_nan, bits, _mm512_set1_epi32(0x400000));
  const __m512i upper = _mm512_maskz_srli_epi32(kAll, chosen, 16);
  return _mm512_maskz_cvtepi32_epi16(kAll, upper);
}

void store_half(std::uint16_t* out, Lanes x) { store_bits(out, half_bits(x)); }
void store_bfloat16(std::uint16_t* out, Lanes x) { store_bits(out, bfloat16_bits(x)); }

// Stores past the caches, at addresses that are a multiple of the stored bytes; drain_streams() makes them visible.
void stream_half(std::uint16_t* out, Lanes x) { stream_bits(out, half_bits(x)); }
void stream_bfloat16(std::uint16_t* out, Lanes x) { stream_bits(out, bfloat16_bits(x)); }
void drain_streams() { _mm_sfence(); }

/// A vector register of 64-bit numbers.
using Words = std::uint64_t __attribute__((vector_size(64)));
constexpr std::int64_t kWords = 8;

Words count_from(std::uint64_t first) { return first + Words{0, 1, 2, 3, 4, 5, 6, 7}; }
/// The products of the low halves with k.
Words low_product(Words a, std::uint32_t k) {
  return reinterpret_cast<Words>(_mm512_maskz_mul_epu32(0xff, reinterpret_cast<__m512i>(a), _mm512_set1_epi64(k)));
}
/// a[0], b[0], a[1], b[1], ...
void store_pairs(std::uint32_t* out, Words a, Words b) {
  const __m512i x = reinterpret_cast<__m512i>(a);
  const __m512i y = reinterpret_cast<__m512i>(b);
  _mm512_storeu_si512(out, _mm512_permutex2var_epi64(x, _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11), y));
  _mm512_storeu_si512(out + 16, _mm512_permutex2var_epi64(x, _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15), y));
}

}  // namespace
}  // namespace lockstep::kernels::cpu::avx512
