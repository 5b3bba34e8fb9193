// SPDX-License-Identifier: Apache-2.0
// Training with a penalty on the gradient by the input, step by step beside PyTorch.
#include <cmath>
#include <functional>
#include <string>
#include <string_view>

#include "amp/autocast/autocast.h"
#include "runtime/autograd/engine.h"
#include "runtime/ops/operators.h"
#include "runtime/ops/ops.h"
#include "tests/golden/golden_fixture.h"

namespace lockstep::kernels {
namespace {

using Tensors = std::vector<Tensor>;
using Model = std::function<Tensor(const Tensor& x, const Tensors& w)>;

Tensor mlp(const Tensor& x, const Tensors& w) {
  const Tensor h = ops::linear(ops::linear(x, w[0], w[1], Activation::kGelu), w[2], w[3], Activation::kTanh);
  return ops::linear(h, w[4], w[5]);
}

Tensor convnet(const Tensor& x, const Tensors& w) {
  const auto block = [&w](const Tensor& input, std::size_t first, std::int64_t stride) {
    const ConvGeometry geometry{.stride = {stride, stride, 1}, .padding = {1, 1, 0}};
    return ops::batch_norm(ops::conv(input, w[first], {}, geometry), w[first + 1], w[first + 2], {}, {}, {},
                           {.relu = true});
  };
  return ops::linear(ops::global_average_pool(block(block(x, 0, 1), 3, 2)), w[6], w[7]);
}

/// Of 20 steps from the stored weights on a device.
std::vector<double> losses_of(const Model& model, const json& stored, Device device) {
  const Tensor x = tensor_in(stored["x"], DType::kFloat32).to(device);
  const Tensor target = tensor_in(stored["target"], DType::kFloat32).to(device);
  Tensors weights;
  for (const json& weight : stored["weights"]) weights.push_back(tensor_in(weight, DType::kFloat32).to(device));
  x.set_requires_grad(true);
  std::vector<double> losses;
  for (int step = 0; step < 20; ++step) {
    for (const Tensor& weight : weights) weight.set_requires_grad(true);
    const Tensor y = model(x, weights);
    const Tensor dx = autograd::grad(ops::sum(y), {x}, {}, {.create_graph = true}).front();
    const Tensor flat = ops::flatten(dx);
    const Tensor excess = ops::sqrt(ops::sum_to(flat * flat, {flat.size(0), 1})) - 1;
    const Tensor loss = ops::mse(y, target) + ops::mean(excess * excess);
    losses.push_back(loss.item());
    const Tensors gradients = autograd::grad(loss, weights);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      weights[i] = weights[i].detach() - gradients[i] * stored["learning_rate"].get<double>();
    }
  }
  return losses;
}

void expect_losses(const std::vector<double>& found, const json& stored, double bound) {
  ASSERT_EQ(found.size(), stored.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double expected = stored[i];
    EXPECT_NEAR(found[i], expected, bound * expected) << "step " << i;
  }
}

class GradientPenalty : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override {
    if (const auto reason = devices::why_skipped(GetParam())) GTEST_SKIP() << *reason;
  }
  static const json& stored(std::string_view model) {
    return golden("gradient_penalty").at("models").at(std::string(model));
  }
};

INSTANTIATE_TEST_SUITE_P(PyTorch, GradientPenalty, ::testing::Values(kCpu, devices::kGpu),
                         [](const auto& at) { return at.param == kCpu ? "cpu" : "cuda"; });

TEST_P(GradientPenalty, TrainsAnMlpAsPyTorchDoes) {
  const json& run = stored("mlp");
  const std::vector<double> full = losses_of(mlp, run, GetParam());
  expect_losses(full, run["losses"], 1e-5);
  const amp::Autocast autocast(DType::kFloat16);
  const std::vector<double> half = losses_of(mlp, run, GetParam());
  expect_losses(half, run["losses_float16"], std::ldexp(1, -8));
  EXPECT_GT(std::abs(half[0] - full[0]), 1e-5) << "it was computed in 16 bits";
}

TEST_P(GradientPenalty, TrainsAConvnetWithBatchNormAsPyTorchDoes) {
  const json& run = stored("convnet");
  const std::vector<double> full = losses_of(convnet, run, GetParam());
  expect_losses(full, run["losses"], 1e-5);
  const amp::Autocast autocast(DType::kFloat16);
  const std::vector<double> half = losses_of(convnet, run, GetParam());
  expect_losses(half, run["losses_float16"], std::ldexp(1, -8));
  EXPECT_GT(std::abs(half[0] - full[0]), 1e-5) << "it was computed in 16 bits";
}

/// Backward runs outside the guard: in which dtype its operations run is the forward pass's to say.
TEST_P(GradientPenalty, ComputesInTheForwardsAutocastState) {
  const json& run = stored("mlp");
  const Tensor x = tensor_in(run["x"], DType::kFloat32).to(GetParam());
  Tensors weights;
  for (const json& weight : run["weights"]) weights.push_back(tensor_in(weight, DType::kFloat32).to(GetParam()));
  for (const Tensor& weight : weights) weight.set_requires_grad(true);
  x.set_requires_grad(true);
  // From a graph that was made within the guard, or without one.
  const auto penalty_gradients = [&](bool forward_within, bool backward_within) {
    Tensor y;
    {
      const amp::Autocast autocast(amp::Autocast::State{forward_within, DType::kFloat16});
      y = ops::sum(mlp(x, weights));
    }
    Tensor dx;
    {
      const amp::Autocast autocast(amp::Autocast::State{backward_within, DType::kFloat16});
      dx = autograd::grad(y, {x}, {}, {.create_graph = true}).front();
    }
    return autograd::grad(ops::sum(dx * dx), weights, {}, {.allow_unused = true});
  };
  for (const bool forward_within : {true, false}) {
    const Tensors expected = penalty_gradients(forward_within, forward_within);
    const Tensors found = penalty_gradients(forward_within, !forward_within);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(found[i].defined(), expected[i].defined());
      if (!expected[i].defined()) continue;
      EXPECT_EQ(testing::bytes_of(found[i]), testing::bytes_of(expected[i])) << i;
    }
  }
}

}  // namespace
}  // namespace lockstep::kernels
