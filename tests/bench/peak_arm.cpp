// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/peak.h"

namespace lockstep::bench {

namespace {

using Lanes4 = float __attribute__((vector_size(16)));

float neon_rounds(float factor) {
  return multiply_add_rounds<Lanes4>(factor, [](Lanes4& sum) { asm volatile("" : "+w"(sum)); });
}

}  // namespace

Peak peak() { return peak_of<Lanes4>(neon_rounds); }

}  // namespace lockstep::bench
