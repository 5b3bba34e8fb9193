// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cpu/loops/block.inl.h"

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {
namespace {

void weighted_sum(const Input* rows, const float* weights, std::int64_t count, float* sum, std::int64_t total) {
  if (count == 0) return static_cast<void>(std::fill_n(sum, total, 0.0f));
  for_each_block(total, [&](std::int64_t begin, std::int64_t n) {
    for (std::int64_t k = 0; k < count; ++k) {
      Reader row(rows[k]);
      const float* const values = row(begin, n);
      const float weight = weights[k];
      float* const to = sum + begin;
      if (k == 0) {
        LOCKSTEP_VECTORIZE for (std::int64_t i = 0; i < n; ++i) to[i] = weight * values[i];
      } else {
        LOCKSTEP_VECTORIZE for (std::int64_t i = 0; i < n; ++i) to[i] += weight * values[i];
      }
    }
  });
}

void resample_pixels(const float* row, const PixelTaps& taps, std::int64_t pixels, std::int64_t channels, float* out) {
  for (std::int64_t pixel = 0; pixel < pixels; ++pixel, out += channels) {
    const std::int32_t first = taps.begin[pixel];
    const std::int32_t end = taps.begin[pixel + 1];
    const auto from = [&](std::int32_t k) { return row + taps.pixel[k] * channels; };
    if (end - first == 2) {
      const float* const a = from(first);
      const float* const b = from(first + 1);
      const float weight_a = taps.weight[first];
      const float weight_b = taps.weight[first + 1];
      LOCKSTEP_VECTORIZE for (std::int64_t c = 0; c < channels; ++c) out[c] = weight_a * a[c] + weight_b * b[c];
      continue;
    }
    if (first == end) std::fill_n(out, channels, 0.0f);
    for (std::int32_t k = first; k < end; ++k) {
      const float* const a = from(k);
      const float weight = taps.weight[k];
      if (k == first) {
        LOCKSTEP_VECTORIZE for (std::int64_t c = 0; c < channels; ++c) out[c] = weight * a[c];
      } else {
        LOCKSTEP_VECTORIZE for (std::int64_t c = 0; c < channels; ++c) out[c] += weight * a[c];
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA
