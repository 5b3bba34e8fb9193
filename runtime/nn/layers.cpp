// SPDX-License-Identifier: Apache-2.0
#include "runtime/nn/layers.h"

#include <cmath>

#include "runtime/nn/name_hash.h"
#include "runtime/nn/step_context.h"
#include "runtime/ops/ops.h"

namespace lockstep::nn {

namespace {

Shape conv_weight_shape(std::int64_t in, std::int64_t out, const ConvOptions& options) {
  std::vector<std::int64_t> extents{out};
  extents.insert(extents.end(), static_cast<std::size_t>(options.geometry.spatial_rank), options.kernel);
  extents.push_back(in / options.geometry.groups);
  return Shape(std::span<const std::int64_t>(extents));
}

}  // namespace

Linear::Linear(std::int64_t in, std::int64_t out, bool bias, kernels::Activation activation) : activation_(activation) {
  const Initializer uniform = Initializer::uniform(1.0 / std::sqrt(static_cast<double>(in)));
  weight_ = add_parameter("weight", {out, in}, ParameterKind::kWeight, uniform);
  if (bias) bias_ = add_parameter("bias", {out}, ParameterKind::kBias, uniform);
}

Tensor Linear::forward(const Tensor& x) { return ops::linear(x, weight_, bias_, activation_); }

Conv::Conv(std::int64_t in, std::int64_t out, const ConvOptions& options) : geometry_(options.geometry) {
  const Shape shape = conv_weight_shape(in, out, options);
  const double fan_in = static_cast<double>(shape.numel() / out);
  const double fan_out = static_cast<double>(shape.numel() / shape.back());
  const Initializer uniform = Initializer::uniform(1.0 / std::sqrt(fan_in));
  weight_ = add_parameter("weight", shape, ParameterKind::kWeight,
                          options.kaiming_normal ? Initializer::normal(std::sqrt(2.0 / fan_out)) : uniform);
  if (options.bias) bias_ = add_parameter("bias", {out}, ParameterKind::kBias, uniform);
}

Tensor Conv::forward(const Tensor& x) { return ops::conv(x, weight_, bias_, geometry_); }

BatchNorm::BatchNorm(std::int64_t channels, bool relu, double initial_gamma)
    : gamma_(add_parameter("weight", {channels}, ParameterKind::kNorm, Initializer::constant(initial_gamma))),
      beta_(add_parameter("bias", {channels}, ParameterKind::kNorm, Initializer::constant(0.0))),
      running_(add_statistics("running", channels)) {
  options_.relu = relu;
}

Tensor BatchNorm::forward(const Tensor& x, const Tensor& residual) {
  if (!training()) {
    return ops::batch_norm_inference(x, gamma_, beta_, residual, running_.committed(), options_);
  }
  const Tensor next = Tensor::empty(running_.committed().shape(), DType::kFloat32, x.device());
  const Tensor y = ops::batch_norm(x, gamma_, beta_, residual, running_.latest(), next, options_);
  running_.set_pending(next);
  return y;
}

Tensor Dropout::forward(const Tensor& x) {
  if (!training()) return x;
  const StepContext::Values at = StepContext::current();
  return ops::dropout(x, p_, {at.seed, at.step, layer_}, at.first_sample);
}

Tensor Activation::forward(const Tensor& x) {
  switch (activation_) {
    case kernels::Activation::kNone:
      return x;
    case kernels::Activation::kRelu:
      return ops::relu(x);
    case kernels::Activation::kGelu:
      return ops::gelu(x);
    case kernels::Activation::kGeluTanh:
      return ops::gelu_tanh(x);
  }
  return x;
}

Tensor Pool::forward(const Tensor& x) { return ops::pool(x, geometry_); }
Tensor GlobalAveragePool::forward(const Tensor& x) { return ops::global_average_pool(x); }
Tensor Flatten::forward(const Tensor& x) { return ops::flatten(x); }

Tensor Sequential::forward(const Tensor& x) {
  Tensor y = x;
  for (Module* module : order_) y = module->forward(y);
  return y;
}

void name_layers(Module& root) {
  root.for_each([](const std::string& path, Module& module) {
    if (auto* dropout = dynamic_cast<Dropout*>(&module)) dropout->set_layer(name_hash(path));
  });
}

}  // namespace lockstep::nn
