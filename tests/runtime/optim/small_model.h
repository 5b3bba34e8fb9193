// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/kernels/assign.h"
#include "runtime/nn/layers.h"
#include "runtime/ops/ops.h"
#include "runtime/optim/optimizer.h"
#include "tests/runtime/kernels/tensors.h"
#include "tests/runtime/optim/make_optimizer.h"
#include "tests/support/devices.h"

namespace lockstep::optim::testing {

using kernels::testing::bytes_of;
using kernels::testing::values_of;
using lockstep::devices::device;

/// A linear layer and a batch norm (weight, bias, norm weight, norm bias) on device() with an optimizer over their
/// arena, whose gradients can be dictated.
class SmallModel {
 public:
  explicit SmallModel(const MakeOptimizer& make, nn::ArenaOptions options = {}) {
    options.device = device();
    net.add<nn::Linear>("dense", 5, 7);
    norm = &net.add<nn::BatchNorm>("norm", 7);
    nn::initialize(net, 3);
    optimizer = make.of(net.parameters());
    arena = std::make_shared<nn::Arena>(net, options);
    optimizer->attach(arena);
  }

  /// Gives every parameter, times `scale`, the gradient that gradient(parameter, step) names.
  void backward(int step, double scale = 1.0) {
    optimizer->zero_grad();
    for (std::size_t i = 0; i < parameters().size(); ++i) {
      const Tensor tensor = parameters()[i].tensor;
      const std::vector<double> gradient = gradient_of(i, step);
      const Tensor direction = kernels::testing::tensor_of(gradient, tensor.shape(), tensor.dtype()).to(device());
      ops::sum(ops::scale(ops::mul(tensor, direction), scale)).backward();
    }
  }

  /// Makes element `at` of the parameter's gradient `value`.
  void spoil(std::size_t parameter, std::int64_t at, double value) const {
    const Tensor gradient = parameters()[parameter].tensor.grad();
    kernels::fill(gradient.reshaped({gradient.numel()}).rows(at, at + 1), value);
  }

  /// Multiples of 1/64 below 2, which float16 represents.
  std::vector<double> gradient_of(std::size_t parameter, int step) const {
    const auto seed = static_cast<std::uint32_t>(100 * step) + static_cast<std::uint32_t>(parameter);
    const Shape shape = parameters()[parameter].tensor.shape();
    const Tensor random = kernels::testing::random_tensor(shape, DType::kFloat64, seed, -2, 2);
    std::vector<double> values = values_of(random);
    for (double& value : values) value = std::round(value * 64) / 64;
    return values;
  }

  std::vector<nn::Parameter> parameters() const { return net.parameters(); }

  nn::Sequential net;
  nn::BatchNorm* norm = nullptr;
  std::shared_ptr<nn::Arena> arena;
  std::unique_ptr<Optimizer> optimizer;
};

/// Everything that a step may change, bit by bit.
inline std::vector<kernels::testing::Bytes> state_of(const Optimizer& optimizer) {
  std::vector<kernels::testing::Bytes> all{bytes_of(optimizer.arena().masters()), bytes_of(optimizer.arena().copies())};
  for (const auto& [name, tensor] : optimizer.state()) all.push_back(bytes_of(tensor));
  for (const auto& [name, tensor] : optimizer.parameter_state()) all.push_back(bytes_of(tensor));
  all.push_back(bytes_of(optimizer.parameter_steps()));
  for (const auto& [name, statistics] : optimizer.arena().statistics())
    all.push_back(bytes_of(statistics->committed()));
  all.push_back(bytes_of(Tensor::from<std::int64_t>({optimizer.applied_steps()}, {})));
  all.push_back(bytes_of(Tensor::from<double>({optimizer.learning_rate()}, {})));
  return all;
}

}  // namespace lockstep::optim::testing
