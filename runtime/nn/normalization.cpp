// SPDX-License-Identifier: Apache-2.0
#include "runtime/nn/normalization.h"

#include <string>

#include "runtime/base/error.h"

namespace lockstep::nn {

namespace {

const Initializer kOnes = Initializer::constant(1.0);
const Initializer kZeros = Initializer::constant(0.0);

}  // namespace

LayerNorm::LayerNorm(const Shape& normalized_shape, const NormOptions& options, ops::NormResult result)
    : normalized_shape_(normalized_shape), epsilon_(options.epsilon), result_(result) {
  if (!options.affine) return;
  weight_ = add_parameter("weight", normalized_shape, ParameterKind::kGain, kOnes);
  if (options.bias) bias_ = add_parameter("bias", normalized_shape, ParameterKind::kBias, kZeros);
}

Tensor LayerNorm::forward(const Tensor& x) {
  return ops::layer_norm(x, normalized_shape_, weight_, bias_, epsilon_, result_);
}

RmsNorm::RmsNorm(const Shape& normalized_shape, std::optional<double> epsilon, bool affine, ops::NormResult result)
    : normalized_shape_(normalized_shape), epsilon_(epsilon), result_(result) {
  if (affine) weight_ = add_parameter("weight", normalized_shape, ParameterKind::kGain, kOnes);
}

Tensor RmsNorm::forward(const Tensor& x) { return ops::rms_norm(x, normalized_shape_, weight_, epsilon_, result_); }

GroupNorm::GroupNorm(std::int64_t groups, std::int64_t channels, const NormOptions& options)
    : groups_(groups), epsilon_(options.epsilon) {
  if (groups < 1 || channels < 1 || channels % groups != 0) {
    throw ShapeError("a GroupNorm of " + std::to_string(channels) + " channels cannot have " + std::to_string(groups) +
                     " groups, which must divide them");
  }
  if (!options.affine) return;
  weight_ = add_parameter("weight", {channels}, ParameterKind::kGain, kOnes);
  if (options.bias) bias_ = add_parameter("bias", {channels}, ParameterKind::kBias, kZeros);
}

Tensor GroupNorm::forward(const Tensor& x) { return ops::group_norm(x, groups_, weight_, bias_, epsilon_); }

InstanceNorm::InstanceNorm(std::int64_t channels, const NormOptions& options) : epsilon_(options.epsilon) {
  if (!options.affine) return;
  weight_ = add_parameter("weight", {channels}, ParameterKind::kGain, kOnes);
  if (options.bias) bias_ = add_parameter("bias", {channels}, ParameterKind::kBias, kZeros);
}

Tensor InstanceNorm::forward(const Tensor& x) { return ops::instance_norm(x, weight_, bias_, epsilon_); }

}  // namespace lockstep::nn
