// SPDX-License-Identifier: Apache-2.0
#include "runtime/optim/clip.h"

#include <gmock/gmock.h>

#include <cmath>

#include "runtime/base/error.h"
#include "tests/runtime/optim/small_model.h"

namespace lockstep::optim {
namespace {

using kernels::testing::expect_close;
using optim::testing::device;
using optim::testing::SmallModel;
using optim::testing::values_of;
using optim::testing::with_sgd;

std::vector<std::vector<double>> gradients_of(const std::vector<nn::Parameter>& parameters) {
  std::vector<std::vector<double>> all;
  for (const nn::Parameter& parameter : parameters) all.push_back(values_of(parameter.tensor.grad()));
  return all;
}

double norm_of(const std::vector<std::vector<double>>& gradients) {
  double sum = 0;
  for (const std::vector<double>& gradient : gradients) {
    for (const double value : gradient) sum += value * value;
  }
  return std::sqrt(sum);
}

TEST(ClipGradNorm, IsPyTorchs) {
  for (const DType wire : {DType::kFloat32, DType::kFloat16}) {
    for (const double max_norm : {0.5, 1e6, 0.0}) {
      SmallModel model(with_sgd({.lr = 0.1}));
      model.arena->place_gradients(Tensor::zeros({model.arena->size()}, wire, device()).storage(), wire);
      model.backward(1);
      std::vector<std::vector<double>> expected = gradients_of(model.parameters());
      const double norm = norm_of(expected);
      expect_close(clip_grad_norm_(model.parameters(), max_norm), {norm}, {.relative = 1e-6});
      const double factor = std::min(1.0, max_norm / (norm + 1e-6));
      const std::vector<std::vector<double>> found = gradients_of(model.parameters());
      for (std::size_t i = 0; i < found.size(); ++i) {
        for (double& value : expected[i]) value *= factor;
        expect_close(found[i], expected[i], {.relative = kernels::testing::epsilon_of(wire), .absolute = 1e-7});
      }
    }
  }
}

TEST(ClipGradNorm, MayBeTheSumOrTheLargestOfAllModels) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const DType wire : {DType::kFloat32, DType::kFloat16}) {
    for (const double type : {1.0, kInfinity}) {
      SmallModel one(with_sgd({.lr = 0.1})), two(with_sgd({.lr = 0.1}));
      for (SmallModel* model : {&one, &two}) {
        model->arena->place_gradients(Tensor::zeros({model->arena->size()}, wire, device()).storage(), wire);
      }
      one.backward(1);
      two.backward(2);
      std::vector<nn::Parameter> all = one.parameters();
      for (const nn::Parameter& parameter : two.parameters()) all.push_back(parameter);
      const std::vector<std::vector<double>> before = gradients_of(all);
      double sum = 0, largest = 0;
      for (const std::vector<double>& gradient : before) {
        for (const double value : gradient) {
          sum += std::abs(value);
          largest = std::max(largest, std::abs(value));
        }
      }
      const double norm = type == 1 ? sum : largest;
      expect_close(clip_grad_norm_(all, 0.5, {.norm_type = type}), {norm}, {.relative = 1e-6});
      expect_close(gradients_of(all)[5],
                   [&] {
                     std::vector<double> scaled = before[5];
                     for (double& value : scaled) value *= 0.5 / (norm + 1e-6);
                     return scaled;
                   }(),
                   {.relative = kernels::testing::epsilon_of(wire), .absolute = 1e-7});
      two.spoil(0, 3, std::nan(""));
      EXPECT_TRUE(std::isnan(clip_grad_norm_(all, 1e9, {.norm_type = type}).item()));
    }
  }
}

TEST(ClipGradNorm, RefusesWhatItIsAskedTo) {
  SmallModel model(with_sgd({.lr = 0.1}));
  model.backward(1);
  model.spoil(1, 0, std::numeric_limits<double>::infinity());
  const std::vector<std::vector<double>> before = gradients_of(model.parameters());
  EXPECT_THROW(clip_grad_norm_(model.parameters(), 1, {.error_if_nonfinite = true}), NumericsError);
  EXPECT_EQ(gradients_of(model.parameters()), before);
  EXPECT_THROW(clip_grad_norm_(model.parameters(), 1, {.norm_type = 3}), UsageError);
}

TEST(ClipGradNorm, IsThatOfTheParametersThatAreNamed) {
  SmallModel model(with_sgd({.lr = 0.1}));
  model.backward(1);
  const std::vector<std::vector<double>> before = gradients_of(model.parameters());
  const std::vector<nn::Parameter> some{model.parameters()[2], model.parameters()[0], model.parameters()[2]};
  expect_close(clip_grad_norm_(some, 1e-3), {norm_of({before[0], before[2]})}, {.relative = 1e-6});
  const std::vector<std::vector<double>> after = gradients_of(model.parameters());
  EXPECT_EQ(after[1], before[1]);
  EXPECT_EQ(after[3], before[3]);
  EXPECT_NEAR(norm_of({after[0], after[2]}), 1e-3, 1e-8);
}

TEST(ClipGradNorm, TakesGradientsThatLieInNoArena) {
  const Tensor a = Tensor::from<float>({3, 0}, {2}).to(device()), b = Tensor::from<float>({4}, {1}).to(device());
  const Tensor none = Tensor::from<float>({1}, {1}).to(device());
  for (const Tensor& tensor : {a, b, none}) tensor.set_requires_grad(true);
  ops::sum(ops::mul(a, a)).backward();
  ops::sum(ops::mul(b, b)).backward();
  const std::vector<nn::Parameter> parameters{{"a", a}, {"none", none}, {"b", b}};
  expect_close(clip_grad_norm_(parameters, 5.0), {10}, {.relative = 1e-6});
  expect_close(a.grad(), {3, 0}, {.relative = 1e-6});
  expect_close(b.grad(), {4}, {.relative = 1e-6});
  EXPECT_FALSE(none.grad().defined());
  EXPECT_EQ(clip_grad_norm_({{"none", none}}, 1.0).item(), 0);
  EXPECT_EQ(clip_grad_norm_({}, 1.0).item(), 0);
}

TEST(ClipGradValue, LimitsEveryElement) {
  SmallModel model(with_sgd({.lr = 0.1}));
  model.backward(1);
  std::vector<std::vector<double>> expected = gradients_of(model.parameters());
  clip_grad_value_(model.parameters(), 0.5);
  const std::vector<std::vector<double>> found = gradients_of(model.parameters());
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (double& value : expected[i]) value = std::clamp(value, -0.5, 0.5);
    EXPECT_EQ(found[i], expected[i]);
  }
}

TEST(Clip, RefusesBoundsThatAreNone) {
  EXPECT_THROW(clip_grad_norm_({}, -1), UsageError);
  EXPECT_THROW(clip_grad_norm_({}, std::nan("")), UsageError);
  EXPECT_THROW(clip_grad_value_({}, 0), UsageError);
}

}  // namespace
}  // namespace lockstep::optim
