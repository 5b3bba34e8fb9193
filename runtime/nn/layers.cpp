// SPDX-License-Identifier: Apache-2.0
#include "runtime/nn/layers.h"

#include <cmath>
#include <span>
#include <string>

#include "runtime/base/error.h"
#include "runtime/base/field_checks.h"
#include "runtime/kernels/assign.h"
#include "runtime/nn/step_context.h"
#include "runtime/ops/ops.h"

namespace lockstep::nn {

namespace {

/// [first, kernel..., last / groups]: a convolution's weight, or with the channels' roles exchanged a transposed one's.
Shape conv_weight_shape(std::int64_t first, std::int64_t last, const ConvOptions& options) {
  const std::int64_t groups = options.geometry.groups;
  if (first < 1 || last < 1 || groups < 1 || first % groups != 0 || last % groups != 0) {
    throw ShapeError("a convolution between " + std::to_string(first) + " and " + std::to_string(last) +
                     " channels cannot have " + std::to_string(groups) + " groups, which must divide both");
  }
  std::vector<std::int64_t> extents{first};
  extents.insert(extents.end(), static_cast<std::size_t>(options.geometry.spatial_rank), options.kernel);
  extents.push_back(last / groups);
  return Shape(std::span<const std::int64_t>(extents));
}

/// Uniform within 1 / sqrt(fan_in).
Initializer uniform_of(std::int64_t fan_in) {
  return Initializer::uniform(1.0 / std::sqrt(static_cast<double>(fan_in)));
}

/// Uniform within 1 / sqrt(fan_in), where fan_in, as in PyTorch, is the product of all extents but the first.
Initializer uniform_of(const Shape& weight) { return uniform_of(weight.numel() / weight.front()); }

Initializer conv_initializer(const Shape& weight, const ConvOptions& options) {
  if (!options.kaiming_normal) return uniform_of(weight);
  return Initializer::normal(std::sqrt(2.0 / static_cast<double>(weight.numel() / weight.back())));
}

}  // namespace

Linear::Linear(std::int64_t in, std::int64_t out, bool bias, ops::Activation activation) : activation_(activation) {
  weight_ = add_parameter("weight", {out, in}, ParameterKind::kWeight, uniform_of(in));
  if (bias) add_bias();
}

Linear::Linear(const Parameter& weight, bool bias, ops::Activation activation) : activation_(activation) {
  if (weight.tensor.shape().rank() != 2) {
    throw ShapeError("a linear layer cannot share " + weight.name + ", " + describe(weight.tensor) +
                     ": its weight is [out, in]");
  }
  weight_ = share_parameter("weight", weight);
  if (bias) add_bias();
}

void Linear::add_bias() {
  bias_ = add_parameter("bias", {weight_.size(0)}, ParameterKind::kBias, uniform_of(weight_.size(1)));
}

Tensor Linear::forward(const Tensor& x) { return ops::linear(x, weight_, bias_, activation_); }

Conv::Conv(std::int64_t in, std::int64_t out, const ConvOptions& options) : geometry_(options.geometry) {
  const Shape shape = conv_weight_shape(out, in, options);
  weight_ = add_parameter("weight", shape, ParameterKind::kWeight, conv_initializer(shape, options));
  if (options.bias) bias_ = add_parameter("bias", {out}, ParameterKind::kBias, uniform_of(shape));
}

Tensor Conv::forward(const Tensor& x) { return ops::conv(x, weight_, bias_, geometry_); }

ConvTranspose::ConvTranspose(std::int64_t in, std::int64_t out, const ConvOptions& options,
                             const std::array<std::int64_t, 3>& output_padding)
    : geometry_(options.geometry), output_padding_(output_padding) {
  const Shape shape = conv_weight_shape(in, out, options);
  weight_ = add_parameter("weight", shape, ParameterKind::kWeight, conv_initializer(shape, options));
  if (options.bias) bias_ = add_parameter("bias", {out}, ParameterKind::kBias, uniform_of(shape));
}

Tensor ConvTranspose::forward(const Tensor& x) {
  return ops::conv_transpose(x, weight_, bias_, geometry_, output_padding_);
}

BatchNorm::BatchNorm(std::int64_t channels, const BatchNormOptions& options)
    : affine_(options.affine), running_(add_statistics("running", channels)) {
  FieldChecks checks;
  checks.check(options.momentum >= 0 && options.momentum <= 1, "momentum", "in [0, 1]", options.momentum);
  checks.positive(options.epsilon, "epsilon");
  require_none(checks.problems(), "batch_norm");
  options_.relu = options.relu;
  options_.momentum = options.momentum;
  options_.epsilon = options.epsilon;
  if (!affine_) return;
  gamma_ = add_parameter("weight", {channels}, ParameterKind::kNorm, Initializer::constant(options.initial_gamma));
  beta_ = add_parameter("bias", {channels}, ParameterKind::kNorm, Initializer::constant(0.0));
}

void BatchNorm::place_constants(Device device) {
  if (gamma_.defined() && gamma_.device() == device) return;
  const Shape channels{running_.committed().size(1)};
  gamma_ = Tensor::empty(channels, DType::kFloat32, device);
  kernels::fill(gamma_, 1.0);
  beta_ = Tensor::zeros(channels, DType::kFloat32, device);
}

Tensor BatchNorm::forward(const Tensor& x, const Tensor& residual) {
  if (!affine_) place_constants(x.device());
  if (!training() || frozen_) {
    return ops::batch_norm_inference(x, gamma_, beta_, residual, running_.committed(), options_);
  }
  // In a training step the share of a rank or of a micro-batch may be one sample, as its sampler cuts it.
  const bool is_share = options_.reducer != nullptr || StepContext::current().named;
  if (!is_share && x.numel() > 0 && x.shape().rows() == 1) {
    throw ShapeError("a batch norm in training needs more than one value a channel, and gets " + describe(x) +
                         ": their variance would be 0 and the result beta",
                     "Train on more samples at a time, or call train(false) on the layer.");
  }
  const bool again = StepContext::current().again;
  const Tensor next = again ? Tensor() : Tensor::empty(running_.committed().shape(), DType::kFloat32, x.device());
  const Tensor y = ops::batch_norm(x, gamma_, beta_, residual, running_.latest(), next, options_);
  if (!again) running_.set_pending(next);
  return y;
}

Tensor Dropout::forward(const Tensor& x) {
  if (!training()) return x;
  return ops::dropout(x, p_, next_random_key(), StepContext::current().first_sample);
}

Tensor Activation::forward(const Tensor& x) { return ops::activate(activation_, x); }

Tensor Pool::forward(const Tensor& x) { return ops::pool(x, geometry_); }
Tensor AdaptivePool::forward(const Tensor& x) {
  return kind_ == ops::PoolKind::kMax ? ops::adaptive_max_pool(x, extents_) : ops::adaptive_average_pool(x, extents_);
}
Tensor GlobalAveragePool::forward(const Tensor& x) { return ops::global_average_pool(x); }
Tensor Flatten::forward(const Tensor& x) { return ops::flatten(x); }

Tensor Sequential::forward(const Tensor& x) {
  Tensor y = x;
  for (Module* module : order_) y = run(*module, y);
  return y;
}

}  // namespace lockstep::nn
