// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/tensor/tensor.h"

// Normalisation within a sample. Each takes the statistics in float32 (float64 for float64 x). weight and bias may each
// be undefined and may have another floating dtype than x. Under autocast the result of all but instance_norm is
// float32: 16-bit x is read exactly, without a copy.

namespace lockstep::ops {

/// The dtype of a result under autocast.
enum class NormResult {
  kByPolicy,  ///< as the policy has it: float32
  /// That of a product. Where one product alone reads the result, every bit is that of kByPolicy, and no pass casts it;
  /// the gradients that several readers send back would be added in 16 bits.
  kForProducts,
};

/// y = (x - mean) / sqrt(variance + epsilon) * weight + bias over the last dimensions of x, which are
/// `normalized_shape`; weight and bias have that shape.
[[nodiscard]] Tensor layer_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight = {},
                                const Tensor& bias = {}, double epsilon = 1e-5,
                                NormResult result = NormResult::kByPolicy);
/// y = x / sqrt(mean of x^2 + epsilon) * weight, over the same dimensions. An epsilon that is not given is the distance
/// from 1 to the next float32, or float64 for float64 x.
[[nodiscard]] Tensor rms_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight = {},
                              std::optional<double> epsilon = {}, NormResult result = NormResult::kByPolicy);
/// layer_norm over each sample of x [N, spatial..., C] and each of `groups` groups of neighbouring channels; `groups`
/// divides C; weight, bias [C].
[[nodiscard]] Tensor group_norm(const Tensor& x, std::int64_t groups, const Tensor& weight = {},
                                const Tensor& bias = {}, double epsilon = 1e-5);
/// layer_norm over each sample and channel of x [N, spatial..., C], of at least two pixels; weight, bias [C]. There are
/// no running statistics. Autocast leaves the result in the dtype of x, as PyTorch's.
[[nodiscard]] Tensor instance_norm(const Tensor& x, const Tensor& weight = {}, const Tensor& bias = {},
                                   double epsilon = 1e-5);

}  // namespace lockstep::ops
