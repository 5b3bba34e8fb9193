// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>

#include "tests/runtime/optim/small_model.h"

namespace lockstep::optim {
namespace {

using optim::testing::MakeOptimizer;
using optim::testing::SmallModel;
using optim::testing::values_of;
using optim::testing::with_lamb;
using optim::testing::with_lars;
using optim::testing::with_sgd;
using ::testing::DoubleNear;

/// How far one step takes the dense layer's weight, and its bias, with a group.
std::pair<double, double> distances(const MakeOptimizer& optimizer) {
  SmallModel model(optimizer);
  const auto moved = [&model](std::size_t parameter, const std::vector<double>& before) {
    const std::vector<double> after = values_of(model.parameters()[parameter].tensor);
    double sum = 0;
    for (std::size_t i = 0; i < after.size(); ++i) sum += (after[i] - before[i]) * (after[i] - before[i]);
    return std::sqrt(sum);
  };
  const std::vector<double> weight = values_of(model.parameters()[0].tensor);
  const std::vector<double> bias = values_of(model.parameters()[1].tensor);
  model.backward(1);
  model.optimizer->check_gradients();
  model.optimizer->step(1.0f, 0.0f);
  return {moved(0, weight), moved(1, bias)};
}

double norm_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

TEST(LayerAdaptation, IsOfWeightsUnlessAGroupSaysSo) {
  const SmallModel start(with_lars({.lr = 1}));
  const double weight = norm_of(values_of(start.parameters()[0].tensor));
  const double bias = norm_of(values_of(start.parameters()[1].tensor));
  const double weight_gradient = norm_of(start.gradient_of(0, 1)), bias_gradient = norm_of(start.gradient_of(1, 1));
  const auto pair = [](double first, double second) {
    return ::testing::Pair(DoubleNear(first, 1e-6), DoubleNear(second, 1e-6));
  };
  const auto lars = [](std::optional<bool> adapts) {
    return distances(with_lars({.lr = 0.125, .trust_coefficient = 0.5},
                               {.groups = {{.match = "dense", .layer_adaptation = adapts}}}));
  };
  EXPECT_THAT(lars({}), pair(0.0625 * weight, 0.125 * bias_gradient));
  EXPECT_THAT(lars(true), pair(0.0625 * weight, 0.0625 * bias));
  EXPECT_THAT(lars(false), pair(0.125 * weight_gradient, 0.125 * bias_gradient));
  const auto larc = [](std::optional<bool> adapts) {
    return distances(with_sgd({.lr = 0.125}, {.groups = {{.match = "dense", .layer_adaptation = adapts}},
                                              .larc = LarcOptions{.trust_coefficient = 0.5, .clip = false}}));
  };
  EXPECT_THAT(larc({}), pair(0.0625 * weight, 0.0625 * bias));
  EXPECT_THAT(larc(false), pair(0.125 * weight_gradient, 0.125 * bias_gradient));
  // Adam's first step goes lr, in each element.
  const auto lamb = [](std::optional<bool> adapts) {
    return distances(with_lamb({.lr = 0.125, .epsilon = 1e-12, .weight_decay = 0},
                               {.groups = {{.match = "dense", .layer_adaptation = adapts}}}));
  };
  EXPECT_THAT(lamb({}), pair(0.125 * std::sqrt(35), 0.125 * std::sqrt(7)));
  EXPECT_THAT(lamb(true), pair(0.125 * weight, 0.125 * bias));
}

TEST(LayerAdaptation, LarcIsAtMostTheLearningRate) {
  const SmallModel start(with_sgd({.lr = 1}));
  const double gradient = norm_of(start.gradient_of(0, 1));
  const auto [weight, bias] = distances(with_sgd({.lr = 0.001}, {.larc = LarcOptions{.trust_coefficient = 1}}));
  EXPECT_NEAR(weight, 0.001 * gradient, 1e-7);
}

TEST(Lamb, KeepsToTheSmallerLimitOfTheGradientsNorm) {
  const auto second_moment = [](double max_grad_norm, std::optional<double> clip_norm) {
    SmallModel model(with_lamb({.lr = 0.1, .max_grad_norm = max_grad_norm}, {.clip_norm = clip_norm}));
    model.backward(1);
    model.optimizer->check_gradients();
    model.optimizer->step(1.0f, 0.0f);
    double sum = 0;
    for (const double value : values_of(model.optimizer->state()[1].second)) sum += value;
    return sum / (1 - 0.999);  // of the squares of the clipped gradients
  };
  EXPECT_NEAR(second_moment(0.5, {}), 0.25, 1e-6);
  EXPECT_NEAR(second_moment(0.5, 2.0), 0.25, 1e-6);
  EXPECT_NEAR(second_moment(2, 0.5), 0.25, 1e-6);
  EXPECT_GT(second_moment(0, {}), 10);
}

}  // namespace
}  // namespace lockstep::optim
