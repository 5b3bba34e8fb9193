// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda_runtime_api.h"
#include "runtime/tensor/half.h"

struct __half {
  unsigned short bits;
};
inline __half __ushort_as_half(unsigned short bits) { return {bits}; }
inline unsigned short __half_as_ushort(__half value) { return value.bits; }
inline float __half2float(__half value) {
  lockstep::Half half;
  half.bits = value.bits;
  return static_cast<float>(half);
}
inline __half __float2half_rn(float value) { return {lockstep::Half(value).bits}; }
