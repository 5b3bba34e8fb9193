// SPDX-License-Identifier: Apache-2.0
#pragma once

// Included once for each instruction set, with LOCKSTEP_ISA naming it, before bfloat16_bits() is defined.

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {
namespace {

/// A vector register of float32.
using Lanes = float32x4_t;
constexpr std::int64_t kLanes = 4;

Lanes load_float(const float* in) { return vld1q_f32(in); }
void store_float(float* out, Lanes x) { vst1q_f32(out, x); }
Lanes broadcast(float x) { return vdupq_n_f32(x); }
/// a * b + c, rounded once.
Lanes multiply_add(Lanes a, Lanes b, Lanes c) { return vfmaq_f32(c, a, b); }

/// The halves of the vector are added, then those of their sum.
float sum_of_lanes(Lanes x) {
  const float32x2_t sums = vadd_f32(vget_low_f32(x), vget_high_f32(x));
  return vget_lane_f32(sums, 0) + vget_lane_f32(sums, 1);
}

/// float_to_bfloat16_bits
uint16x4_t bfloat16_bits(Lanes x);

Lanes load_half(const std::uint16_t* in) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(in))); }
void store_half(std::uint16_t* out, Lanes x) { vst1_u16(out, vreinterpret_u16_f16(vcvt_f16_f32(x))); }
Lanes load_bfloat16(const std::uint16_t* in) { return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(in), 16)); }
void store_bfloat16(std::uint16_t* out, Lanes x) { vst1_u16(out, bfloat16_bits(x)); }

// There are stores of two registers that ask for no place in the caches; no compiler makes them from C++.
void stream_float(float* out, Lanes x) { store_float(out, x); }
void stream_half(std::uint16_t* out, Lanes x) { store_half(out, x); }
void stream_bfloat16(std::uint16_t* out, Lanes x) { store_bfloat16(out, x); }
void drain_streams() {}

/// A vector register of 64-bit numbers.
using Words = std::uint64_t __attribute__((vector_size(16)));
constexpr std::int64_t kWords = 2;

Words count_from(std::uint64_t first) { return first + Words{0, 1}; }
/// The products of the low halves with k.
Words low_product(Words a, std::uint32_t k) {
  return reinterpret_cast<Words>(vmull_n_u32(vmovn_u64(reinterpret_cast<uint64x2_t>(a)), k));
}
/// a[0], b[0], a[1], b[1]
void store_pairs(std::uint32_t* out, Words a, Words b) {
  const uint64x2_t x = reinterpret_cast<uint64x2_t>(a);
  const uint64x2_t y = reinterpret_cast<uint64x2_t>(b);
  vst1q_u32(out, vreinterpretq_u32_u64(vzip1q_u64(x, y)));
  vst1q_u32(out + 4, vreinterpretq_u32_u64(vzip2q_u64(x, y)));
}

}  // namespace
}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA
