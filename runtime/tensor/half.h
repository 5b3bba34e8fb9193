// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

#include "runtime/base/host_device.h"

namespace lockstep {

/// IEEE binary16 bits of x, rounded to nearest even; overflow becomes infinity, subnormals are kept.
LOCKSTEP_HOST_DEVICE inline std::uint16_t float_to_half_bits(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // >= 65520 rounds to infinity
  if (magnitude < 0x38800000u) {
    // Below 2^-14: adding 0.5 aligns the mantissa so that the FPU rounds to a multiple of 2^-24.
    const float aligned = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(aligned) - 0x3f000000u));
  }
  const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

LOCKSTEP_HOST_DEVICE inline float half_bits_to_float(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t magnitude = half & 0x7fffu;
  if (magnitude >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
  if (magnitude >= 0x400u) return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000u));
  const float value = static_cast<float>(magnitude) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
}

/// bfloat16 bits of x, rounded to nearest even; NaN stays NaN.
LOCKSTEP_HOST_DEVICE inline std::uint16_t float_to_bfloat16_bits(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

LOCKSTEP_HOST_DEVICE inline float bfloat16_bits_to_float(std::uint16_t value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16);
}

/// A 16-bit floating point number as it lies in memory. Arithmetic is done in float; storing rounds once.
struct Half {
  std::uint16_t bits = 0;
  Half() = default;
  LOCKSTEP_HOST_DEVICE explicit Half(float x) : bits(float_to_half_bits(x)) {}
  LOCKSTEP_HOST_DEVICE operator float() const { return half_bits_to_float(bits); }
};

struct BFloat16 {
  std::uint16_t bits = 0;
  BFloat16() = default;
  LOCKSTEP_HOST_DEVICE explicit BFloat16(float x) : bits(float_to_bfloat16_bits(x)) {}
  LOCKSTEP_HOST_DEVICE operator float() const { return bfloat16_bits_to_float(bits); }
};

static_assert(sizeof(Half) == 2 && sizeof(BFloat16) == 2);

}  // namespace lockstep
