// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/tensor/tensor.h"

namespace lockstep::ops {

/// The angles position * theta^(-2 i / channels), i < channels / 2, of consecutive positions: [T, channels] of cosines
/// and of sines, each angle for channel i and for channel i + channels / 2. The sines of the first half are negated.
struct RotaryTable {
  Tensor cos;
  Tensor sin;
};
/// The table of positions [0, length), on the CPU; dtype float32 or float64, computed in float64. Throws UsageError
/// unless `channels` is even and theta > 0.
[[nodiscard]] RotaryTable rotary_table(std::int64_t length, std::int64_t channels, double theta,
                                       DType dtype = DType::kFloat32);

/// Rotary position embedding (Su et al.: "RoFormer", 2021) in the layout of Llama: x [..., T, channels], of which
/// channels i and i + channels / 2 are turned by their angle as one point of the plane. The table is of T positions and
/// in the dtype that x is computed in, float32 or float64; 16-bit x is rounded once. Nothing is saved: the gradient is
/// the opposite turn. Throws ShapeError where table and x do not fit.
[[nodiscard]] Tensor rotary(const Tensor& x, const RotaryTable& table);

}  // namespace lockstep::ops
