// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <immintrin.h>

#include "runtime/kernels/cpu/loops/prelude.h"

LOCKSTEP_BEGIN_TARGET("avx2,fma,f16c")

#define LOCKSTEP_ISA avx2
#define LOCKSTEP_END_ISA LOCKSTEP_END_TARGET

#include "runtime/kernels/cpu/x86/sum_of_lanes.inl.h"

namespace lockstep::kernels::cpu::avx2 {
namespace {

/// A vector register of float32.
using Lanes = __m256;
constexpr std::int64_t kLanes = 8;

Lanes load_float(const float* in) { return _mm256_loadu_ps(in); }
void store_float(float* out, Lanes x) { _mm256_storeu_ps(out, x); }
void stream_float(float* out, Lanes x) { _mm256_stream_ps(out, x); }
Lanes broadcast(float x) { return _mm256_set1_ps(x); }
/// a * b + c, rounded once.
Lanes multiply_add(Lanes a, Lanes b, Lanes c) { return _mm256_fmadd_ps(a, b, c); }

__m128i load_bits(const std::uint16_t* in) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(in)); }
void store_bits(std::uint16_t* out, __m128i bits) { _mm_storeu_si128(reinterpret_cast<__m128i*>(out), bits); }
void stream_bits(std::uint16_t* out, __m128i bits) { _mm_stream_si128(reinterpret_cast<__m128i*>(out), bits); }

Lanes load_half(const std::uint16_t* in) { return _mm256_cvtph_ps(load_bits(in)); }
__m128i half_bits(Lanes x) { return _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT); }

Lanes load_bfloat16(const std::uint16_t* in) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load_bits(in)), 16));
}

/// float_to_bfloat16_bits
__m128i bfloat16_bits(Lanes x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  const __m256i upper = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, is_nan), 16);
  // Packing works within each half of the register; the permutation brings the halves together.
  const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(upper, upper), 0x08);
  return _mm256_castsi256_si128(packed);
}

void store_half(std::uint16_t* out, Lanes x) { store_bits(out, half_bits(x)); }
void store_bfloat16(std::uint16_t* out, Lanes x) { store_bits(out, bfloat16_bits(x)); }

// Stores past the caches, at addresses that are a multiple of the stored bytes; drain_streams() makes them visible.
void stream_half(std::uint16_t* out, Lanes x) { stream_bits(out, half_bits(x)); }
void stream_bfloat16(std::uint16_t* out, Lanes x) { stream_bits(out, bfloat16_bits(x)); }
void drain_streams() { _mm_sfence(); }

/// A vector register of 64-bit numbers.
using Words = std::uint64_t __attribute__((vector_size(32)));
constexpr std::int64_t kWords = 4;

Words count_from(std::uint64_t first) { return first + Words{0, 1, 2, 3}; }
/// The products of the low halves with k.
Words low_product(Words a, std::uint32_t k) {
  return reinterpret_cast<Words>(_mm256_mul_epu32(reinterpret_cast<__m256i>(a), _mm256_set1_epi64x(k)));
}
/// a[0], b[0], a[1], b[1], ...
void store_pairs(std::uint32_t* out, Words a, Words b) {
  // Unpacking works within each half of the register.
  const __m256i even = _mm256_unpacklo_epi64(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b));
  const __m256i odd = _mm256_unpackhi_epi64(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b));
  auto* to = reinterpret_cast<__m256i*>(out);
  _mm256_storeu_si256(to, _mm256_permute2x128_si256(even, odd, 0x20));
  _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(even, odd, 0x31));
}

}  // namespace
}  // namespace lockstep::kernels::cpu::avx2
