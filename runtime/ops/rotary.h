// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "runtime/base/option_fields.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::ops {

/// How a model turns more slowly than its theta says, for texts longer than those of its first training. The formulas
/// are those of transformers' modeling_rope_utils.py.
enum class RotaryScalingKind {
  kLinear,  ///< all frequencies are divided by the factor (Chen et al.: "Extending Context Window ...", 2023)
  kLlama3,  ///< the low ones are: Llama 3.1 (Grattafiori et al.: "The Llama 3 Herd of Models", 2024)
};

/// The defaults are Llama 3.1's. Of kLlama3, a frequency whose wavelength, 2 pi / frequency, is below original_context
/// / high_freq_factor stays; one above original_context / low_freq_factor is divided by the factor; between them both
/// are mixed, in proportion to original_context / wavelength.
struct RotaryScaling {
  RotaryScalingKind kind = RotaryScalingKind::kLlama3;
  double factor = 8;
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  std::int64_t original_context = 8192;

  static constexpr auto fields() {
    return std::tuple(option("type", &RotaryScaling::kind), option("factor", &RotaryScaling::factor, kAtLeastOne),
                      option("low_freq_factor", &RotaryScaling::low_freq_factor, kPositive),
                      option("high_freq_factor", &RotaryScaling::high_freq_factor, kPositive),
                      option("original_context", &RotaryScaling::original_context, kAtLeastOne));
  }
  bool operator==(const RotaryScaling&) const = default;
};

/// The angle by which channel i < channels / 2 turns from a position to the next: theta^(-2 i / channels), scaled.
/// Throws UsageError unless `channels` is even and theta > 0.
[[nodiscard]] std::vector<double> rotary_frequencies(std::int64_t channels, double theta,
                                                     const std::optional<RotaryScaling>& scaling = {});

/// The angles position * frequency of consecutive positions: [T, channels] of cosines and of sines, each angle for
/// channel i and for channel i + channels / 2. The sines of the first half are negated.
struct RotaryTable {
  Tensor cos;
  Tensor sin;
};
/// The table of positions [0, length), on the CPU; dtype float32 or float64, computed in float64.
[[nodiscard]] RotaryTable rotary_table(std::int64_t length, const std::vector<double>& frequencies,
                                       DType dtype = DType::kFloat32);
/// That of frequencies that are not scaled. Throws as rotary_frequencies() does.
[[nodiscard]] RotaryTable rotary_table(std::int64_t length, std::int64_t channels, double theta,
                                       DType dtype = DType::kFloat32);

/// Rotary position embedding (Su et al.: "RoFormer", 2021) in the layout of Llama: x [..., T, channels], of which
/// channels i and i + channels / 2 are turned by their angle as one point of the plane. The table is of T positions and
/// in the dtype that x is computed in, float32 or float64; 16-bit x is rounded once. Nothing is saved: the gradient is
/// the opposite turn. Throws ShapeError where table and x do not fit.
[[nodiscard]] Tensor rotary(const Tensor& x, const RotaryTable& table);

}  // namespace lockstep::ops
