// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cpu/peak.h"

namespace lockstep::kernels::cpu {

namespace {

using Lanes4 = float __attribute__((vector_size(16)));

float neon_rounds(float factor) {
  return multiply_add_rounds<Lanes4>(factor, [](Lanes4& sum) { asm volatile("" : "+w"(sum)); });
}

}  // namespace

Peak float32_peak() { return peak_of<Lanes4>(neon_rounds); }
Peak bfloat16_peak() { return {nullptr, 0}; }

}  // namespace lockstep::kernels::cpu
