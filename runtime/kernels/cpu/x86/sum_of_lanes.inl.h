// SPDX-License-Identifier: Apache-2.0
#pragma once

// Included once for each instruction set, with LOCKSTEP_ISA naming it.

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {
namespace {

/// The halves of the vector are added, then those of their sum, and so on.
float sum_of_lanes(__m256 x) {
  __m128 sums = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  sums = _mm_add_ps(sums, _mm_movehl_ps(sums, sums));
  return _mm_cvtss_f32(_mm_add_ss(sums, _mm_movehdup_ps(sums)));
}

}  // namespace
}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA
