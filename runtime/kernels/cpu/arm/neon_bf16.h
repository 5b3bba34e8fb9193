// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arm_neon.h>

#include "runtime/kernels/cpu/loops/prelude.h"

LOCKSTEP_BEGIN_TARGET("arch=armv8.2-a+bf16")

#define LOCKSTEP_ISA neon_bf16
#define LOCKSTEP_END_ISA LOCKSTEP_END_TARGET

#include "runtime/kernels/cpu/arm/lanes.inl.h"

namespace lockstep::kernels::cpu::neon_bf16 {
namespace {

/// Unlike the instructions that multiply bfloat16, and unlike AVX512_BF16's, this one keeps subnormal numbers.
uint16x4_t bfloat16_bits(Lanes x) { return vreinterpret_u16_bf16(vcvt_bf16_f32(x)); }

}  // namespace
}  // namespace lockstep::kernels::cpu::neon_bf16
