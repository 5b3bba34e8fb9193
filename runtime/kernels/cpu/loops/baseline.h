// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cpu/loops/prelude.h"

#define LOCKSTEP_ISA baseline
#define LOCKSTEP_END_ISA

namespace lockstep::kernels::cpu::baseline {
namespace {

/// A vector register of float32. Without conversion instructions it is one element.
using Lanes = float;
constexpr std::int64_t kLanes = 1;

Lanes load_float(const float* in) { return *in; }
void store_float(float* out, Lanes x) { *out = x; }
Lanes broadcast(float x) { return x; }
/// a * b + c
Lanes multiply_add(Lanes a, Lanes b, Lanes c) { return a * b + c; }
float sum_of_lanes(Lanes x) { return x; }
Lanes load_half(const std::uint16_t* in) { return half_bits_to_float(*in); }
void store_half(std::uint16_t* out, Lanes x) { *out = float_to_half_bits(x); }
Lanes load_bfloat16(const std::uint16_t* in) { return bfloat16_bits_to_float(*in); }
void store_bfloat16(std::uint16_t* out, Lanes x) { *out = float_to_bfloat16_bits(x); }
// The baseline has no instructions that store past the caches: these store as usual.
void stream_float(float* out, Lanes x) { store_float(out, x); }
void stream_half(std::uint16_t* out, Lanes x) { store_half(out, x); }
void stream_bfloat16(std::uint16_t* out, Lanes x) { store_bfloat16(out, x); }
void drain_streams() {}

/// A 64-bit number.
using Words = std::uint64_t;
constexpr std::int64_t kWords = 1;

Words count_from(std::uint64_t first) { return first; }
/// The product of the low half with k.
Words low_product(Words a, std::uint32_t k) { return std::uint64_t{k} * static_cast<std::uint32_t>(a); }
void store_pairs(std::uint32_t* out, Words a, Words b) {
  for (int i = 0; i < 2; ++i) {
    out[i] = static_cast<std::uint32_t>(a >> (32 * i));
    out[i + 2] = static_cast<std::uint32_t>(b >> (32 * i));
  }
}

}  // namespace
}  // namespace lockstep::kernels::cpu::baseline
