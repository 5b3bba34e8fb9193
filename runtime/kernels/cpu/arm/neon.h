// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arm_neon.h>

#include "runtime/kernels/cpu/loops/prelude.h"

#define LOCKSTEP_ISA neon
#define LOCKSTEP_END_ISA

#include "runtime/kernels/cpu/arm/lanes.inl.h"

namespace lockstep::kernels::cpu::neon {
namespace {

uint16x4_t bfloat16_bits(Lanes x) {
  const uint32x4_t bits = vreinterpretq_u32_f32(x);
  const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
  const uint32x4_t rounded = vaddq_u32(vaddq_u32(bits, vdupq_n_u32(0x7fff)), odd);
  const uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x400000));
  return vshrn_n_u32(vbslq_u32(vceqq_f32(x, x), rounded, quiet), 16);
}

}  // namespace
}  // namespace lockstep::kernels::cpu::neon
