// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cpu/loops/lanes.inl.h"

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {
namespace {

/// largest_pixels() for so many channels, whose maxima stay in registers.
template <int Channels>
void largest_of(const float* x, const std::int32_t* pixels, std::int64_t count, std::int64_t channels, float* maxima,
                std::int32_t* winners) {
  float max[Channels];
  std::int32_t winner[Channels];
  for (int c = 0; c < Channels; ++c) max[c] = x[pixels[0] * channels + c];
  for (int c = 0; c < Channels; ++c) winner[c] = pixels[0];
  for (std::int64_t k = 1; k < count; ++k) {
    const float* const values = x + pixels[k] * channels;
    for (int c = 0; c < Channels; ++c) {
      // Branchless, to be vectorised. A NaN wins and stays.
      const bool takes = !(values[c] <= max[c]) & (max[c] == max[c]);
      max[c] = takes ? values[c] : max[c];
      winner[c] = takes ? pixels[k] : winner[c];
    }
  }
  std::copy_n(max, Channels, maxima);
  std::copy_n(winner, Channels, winners);
}

void largest_pixels(const float* x, const std::int32_t* pixels, std::int64_t count, std::int64_t channels,
                    float* maxima, std::int32_t* winners) {
  std::int64_t c = 0;
  const auto step = [&]<int Channels>(std::integral_constant<int, Channels>) {
    largest_of<Channels>(x + c, pixels, count, channels, maxima + c, winners + c);
    c += Channels;
  };
  while (channels - c >= 16) step(std::integral_constant<int, 16>());
  if (channels - c >= 8) step(std::integral_constant<int, 8>());
  if (channels - c >= 4) step(std::integral_constant<int, 4>());
  while (channels - c >= 1) step(std::integral_constant<int, 1>());
}

}  // namespace
}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA
