// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda_runtime_api.h"
#include "runtime/tensor/half.h"

struct __nv_bfloat16 {
  unsigned short bits;
};
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) { return {bits}; }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 value) { return value.bits; }
inline float __bfloat162float(__nv_bfloat16 value) {
  lockstep::BFloat16 bfloat;
  bfloat.bits = value.bits;
  return static_cast<float>(bfloat);
}
inline __nv_bfloat16 __float2bfloat16_rn(float value) { return {lockstep::BFloat16(value).bits}; }
