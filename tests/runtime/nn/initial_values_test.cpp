// SPDX-License-Identifier: Apache-2.0
// Modules have values when they are made.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "runtime/autograd/meta.h"
#include "runtime/nn/embedding.h"
#include "runtime/nn/layers.h"
#include "runtime/nn/normalization.h"
#include "runtime/nn/recurrent.h"
#include "runtime/ops/ops.h"
#include "tests/runtime/kernels/tensors.h"

namespace lockstep::nn {
namespace {

using kernels::testing::values_of;
using ::testing::Each;

std::vector<std::vector<double>> drawn_values_of(const Module& module) {
  std::vector<std::vector<double>> all;
  for (const Parameter& parameter : module.parameters()) all.push_back(values_of(parameter.tensor));
  return all;
}

/// Within the bound, reaches it to a thousandth, with the variance of a uniform distribution.
void expect_uniform(const std::vector<double>& values, double bound) {
  double largest = 0, squares = 0;
  for (const double value : values) {
    largest = std::max(largest, std::abs(value));
    squares += value * value;
  }
  const double count = static_cast<double>(values.size()), variance = bound * bound / 3;
  EXPECT_LE(largest, bound);
  EXPECT_GT(largest, 0.99 * bound);
  // The variance of a square is 4 / 45 of the bound's fourth power.
  EXPECT_NEAR(squares / count, variance, 5 * bound * bound * std::sqrt(4 / (45 * count)));
}

TEST(MadeValues, AreOfPyTorchsDistributions) {
  manual_seed(3);
  const Linear linear(100, 400);
  for (const std::vector<double>& values : drawn_values_of(linear)) expect_uniform(values, 0.1);
  const LstmCell cell(30, 100);
  for (const std::vector<double>& values : drawn_values_of(cell)) expect_uniform(values, 0.1);

  const std::vector<double> rows = values_of(Embedding(500, 40).parameters()[0].tensor);
  double sum = 0, squares = 0;
  for (const double value : rows) {
    sum += value;
    squares += value * value;
  }
  const double count = static_cast<double>(rows.size());
  EXPECT_NEAR(sum / count, 0, 5 / std::sqrt(count));
  EXPECT_NEAR(squares / count, 1, 5 * std::sqrt(2 / count));

  for (const auto& module : {drawn_values_of(LayerNorm({6})), drawn_values_of(BatchNorm(6))}) {
    EXPECT_THAT(module[0], Each(1.0));
    EXPECT_THAT(module[1], Each(0.0));
  }
}

TEST(MadeValues, OfAConvolutionAreBoundByItsFanIn) {
  kernels::ConvGeometry geometry;
  geometry.groups = 4;
  const Conv conv(16, 512, {.geometry = geometry});
  for (const std::vector<double>& values : drawn_values_of(conv)) expect_uniform(values, 1 / std::sqrt(4 * 9.0));
}

TEST(MadeValues, FollowTheSeedAndTheOrder) {
  const auto make = [](std::uint64_t seed) {
    manual_seed(seed);
    Linear first(5, 4), second(5, 4);
    return std::pair(drawn_values_of(first), drawn_values_of(second));
  };
  const auto one = make(7);
  EXPECT_NE(one.first[0], one.second[0]);
  EXPECT_NE(one.first[1], one.second[1]);
  EXPECT_NE(make(8), one);
  EXPECT_EQ(make(7), one);
}

TEST(MadeValues, AreNotTakenByModulesWithoutValues) {
  manual_seed(7);
  const auto expected = drawn_values_of(Linear(5, 4));
  manual_seed(7);
  {
    const WithoutValues without_values;
    const Linear looked_at(5, 4);
  }
  EXPECT_EQ(drawn_values_of(Linear(5, 4)), expected);
}

TEST(MadeValues, GiveWayToInitialize) {
  manual_seed(7);
  Linear one(5, 4);
  manual_seed(8);
  Linear two(5, 4);
  EXPECT_NE(drawn_values_of(one), drawn_values_of(two));
  initialize(one, 3);
  initialize(two, 3);
  EXPECT_EQ(drawn_values_of(one), drawn_values_of(two));
}

TEST(MadeValues, OfParametersWithAnotherInitializerAreDrawnAnew) {
  manual_seed(7);
  Sequential net;
  net.add<Linear>("first", 5, 4);
  const auto before = drawn_values_of(net);
  net.choose_initializers([](const Parameter& parameter) {
    return parameter.kind == ParameterKind::kWeight ? Initializer::constant(2) : parameter.initializer;
  });
  const auto after = drawn_values_of(net);
  EXPECT_THAT(after[0], Each(2.0));
  EXPECT_EQ(after[1], before[1]);
}

TEST(MadeValues, AreEnoughToLearnFrom) {
  manual_seed(1);
  Sequential net;
  net.add<Linear>("in", 2, 16, true, kernels::Activation::kTanh);
  net.add<Linear>("out", 16, 1);
  const Tensor x = Tensor::from<float>({0, 0, 0, 1, 1, 0, 1, 1}, {4, 2});
  const Tensor y = Tensor::from<float>({0, 1, 1, 0}, {4, 1});
  double first = 0, last = 0;
  for (int step = 0; step < 400; ++step) {
    const Tensor loss = ops::mse(net.forward(x), y);
    loss.backward();
    for (const Parameter& parameter : net.parameters()) {
      const Tensor grad = parameter.tensor.grad();
      const std::span<float> weights = parameter.tensor.mutable_as<float>();
      for (std::size_t i = 0; i < weights.size(); ++i) weights[i] -= 0.3f * grad.as<float>()[i];
      autograd::meta_of(parameter.tensor).grad = {};
    }
    (step == 0 ? first : last) = loss.item();
  }
  EXPECT_LT(last, 0.1 * first) << "hidden units that start alike stay alike";
}

TEST(MadeMasks, OfTwoLayersDiffer) {
  Dropout first(0.5), second(0.5);
  const Tensor ones = ops::ones({64, 8});
  EXPECT_NE(values_of(first.forward(ones)), values_of(second.forward(ones)));
}

}  // namespace
}  // namespace lockstep::nn
