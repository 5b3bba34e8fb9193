// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "amp/autocast/autocast.h"
#include "runtime/autograd/cast.h"
#include "tests/runtime/ops/operation_fixture.h"

namespace lockstep::ops {
namespace {

using kernels::testing::expect_close;
using kernels::testing::random_tensor;
using ops::testing::kAllTypes;
using ops::testing::name_of_on;
using ops::testing::OperationTest;

using NormalizationOperations = OperationTest;
INSTANTIATE_TEST_SUITE_P(On, NormalizationOperations, kAllTypes, name_of_on);

constexpr std::int64_t kNormalizedRows[] = {5, 1, 0};

TEST_P(NormalizationOperations, LayerNorm) {
  for (const std::int64_t rows : kNormalizedRows) {
    for (const Shape& normalized : {Shape{7}, Shape{3, 7}}) {
      const Tensor x = random({rows, 3, 7}, 1, -2, 2);
      const Tensor weight = random(normalized, 2, 0.5, 1.5), bias = random(normalized, 3);
      check([&](const auto& in) { return layer_norm(in[0], normalized, in[1], in[2]); }, {x, weight, bias},
            {.terms = 21});
      check([&](const auto& in) { return layer_norm(in[0], normalized, in[1]); }, {x, weight}, {.terms = 21});
      check([&](const auto& in) { return layer_norm(in[0], normalized); }, {x}, {.terms = 21});
    }
  }
}

// A row of one number is its own mean: only the bias is left of it.
TEST_P(NormalizationOperations, LayerNormOfSingleNumbers) {
  check([](const auto& in) { return layer_norm(in[0], {1}, in[1], in[2], 0.5); },
        {random({4, 1}, 1), random({1}, 2), random({1}, 3)}, {.terms = 8});
}

TEST_P(NormalizationOperations, RmsNorm) {
  for (const std::int64_t rows : kNormalizedRows) {
    for (const Shape& normalized : {Shape{7}, Shape{3, 7}}) {
      const Tensor x = random({rows, 3, 7}, 1, -2, 2), weight = random(normalized, 2, 0.5, 1.5);
      check([&](const auto& in) { return rms_norm(in[0], normalized, in[1], 1e-4); }, {x, weight}, {.terms = 21});
      check([&](const auto& in) { return rms_norm(in[0], normalized, {}, 1e-4); }, {x}, {.terms = 21});
    }
  }
}

TEST_P(NormalizationOperations, GroupNorm) {
  for (const std::int64_t rows : kNormalizedRows) {
    for (const Shape& shape : {Shape{rows, 3, 2, 6}, Shape{rows, 5, 6}, Shape{rows, 2, 1, 2, 6}, Shape{rows, 6}}) {
      for (const std::int64_t groups : {1, 2, 3}) {
        const Tensor x = random(shape, 1, -2, 2);
        const Tensor weight = random({6}, 2, 0.5, 1.5), bias = random({6}, 3);
        // Of two numbers the variance may be next to nothing, and the gradient large.
        const double epsilon = shape.rank() == 2 ? 0.1 : 1e-5;
        check([&](const auto& in) { return group_norm(in[0], groups, in[1], in[2], epsilon); }, {x, weight, bias},
              {.terms = 60});
        check([&](const auto& in) { return group_norm(in[0], groups, {}, {}, epsilon); }, {x}, {.terms = 60});
      }
    }
  }
}

TEST_P(NormalizationOperations, InstanceNorm) {
  for (const std::int64_t rows : kNormalizedRows) {
    for (const Shape& shape : {Shape{rows, 3, 4, 5}, Shape{rows, 9, 5}, Shape{rows, 2, 2, 3, 5}}) {
      const Tensor x = random(shape, 1, -2, 2);
      const Tensor weight = random({5}, 2, 0.5, 1.5), bias = random({5}, 3);
      check([](const auto& in) { return instance_norm(in[0], in[1], in[2]); }, {x, weight, bias}, {.terms = 60});
    }
  }
}

/// x in 16 bits with float32 parameters, under autocast and without.
TEST_P(NormalizationOperations, ParametersMayHaveAnotherDtype) {
  const Tensor x = random({4, 3, 6}, 1, -2, 2);
  const Tensor weight = random_wide({6}, 2, 0.5, 1.5), bias = random_wide({6}, 3);
  check([](const auto& in) { return layer_norm(in[0], {6}, in[1], in[2]); }, {x, weight, bias}, {.terms = 60});
  check([](const auto& in) { return group_norm(in[0], 2, in[1], in[2]); }, {x, weight, bias}, {.terms = 60});
  const auto cast_normalized = [](const auto& in) {
    const amp::Autocast autocast(DType::kFloat16);
    return layer_norm(in[0], {6}, in[1], in[2]);
  };
  check(cast_normalized, {x, weight, bias}, {.terms = 60});
}

TEST_P(NormalizationOperations, UnderAutocastResultsAreFloat32ButOfInstanceNorm) {
  const Tensor x = leaf(random({4, 3, 6}, 1)), weight = leaf(random({6}, 2));
  const amp::Autocast autocast(DType::kBFloat16);
  EXPECT_EQ(layer_norm(x, {6}, weight).dtype(), wide());
  EXPECT_EQ(rms_norm(x, {6}, weight).dtype(), wide());
  EXPECT_EQ(group_norm(x, 2, weight).dtype(), wide());
  EXPECT_EQ(instance_norm(x, weight).dtype(), x.dtype());
  const Tensor y = layer_norm(x, {6}, weight);
  const std::vector<Tensor> gradients = autograd::grad(y, {x, weight}, lockstep::testing::output_gradient(y));
  EXPECT_EQ(gradients[0].dtype(), x.dtype());
  EXPECT_EQ(gradients[1].dtype(), weight.dtype());
}

// For a linear layer: no number changes, and a cast is saved in each direction.
TEST_P(NormalizationOperations, ForProductsAreRoundedAsTheirCastDoes) {
  const Tensor x = leaf(random({4, 3, 6}, 1)), weight = leaf(random({6}, 2)), bias = leaf(random({6}, 3));
  const auto normalize = [&](bool layer, NormResult result) {
    return layer ? layer_norm(x, {6}, weight, bias, 1e-5, result) : rms_norm(x, {6}, weight, 1e-5, result);
  };
  EXPECT_EQ(normalize(true, NormResult::kForProducts).dtype(), x.dtype()) << "without autocast";
  for (const DType narrow : {DType::kFloat16, DType::kBFloat16}) {
    const amp::Autocast autocast(narrow);
    for (const bool layer : {true, false}) {
      const Tensor found = normalize(layer, NormResult::kForProducts);
      const Tensor expected =
          autograd::cast(normalize(layer, NormResult::kByPolicy), x.dtype() == DType::kFloat64 ? x.dtype() : narrow);
      // The kernels write a result of x's 16 bits or of float32: what has other 16 bits stays float32.
      const bool other = is_reduced(x.dtype()) && x.dtype() != narrow;
      ASSERT_EQ(found.dtype(), other ? wide() : expected.dtype());
      if (other) continue;
      EXPECT_EQ(kernels::testing::values_of(found), kernels::testing::values_of(expected));
      const std::vector<Tensor> inputs = layer ? std::vector{x, weight, bias} : std::vector{x, weight};
      const Tensor dy = lockstep::testing::output_gradient(expected);
      const std::vector<Tensor> of_found = autograd::grad(found, inputs, dy);
      const std::vector<Tensor> of_expected = autograd::grad(expected, inputs, dy);
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        EXPECT_EQ(kernels::testing::values_of(of_found[i]), kernels::testing::values_of(of_expected[i])) << i;
      }
    }
  }
}

TEST_P(NormalizationOperations, AddToAGradientThatIsThere) {
  const Tensor x = random({4, 6}, 1).to(device()), weight = leaf(random_wide({6}, 2));
  const auto once = [&] {
    const Tensor y = layer_norm(x, {6}, weight);
    autograd::backward(y, lockstep::testing::output_gradient(y));
    return kernels::testing::values_of(weight.grad());
  };
  std::vector<double> expected = once();
  for (double& value : expected) value *= 2;
  EXPECT_EQ(once(), expected);
}

TEST(Normalization, SecondGradients) {
  using lockstep::testing::expect_second_gradients;
  const Tensor x = random_tensor({2, 3, 4}, DType::kFloat64, 1), weight = random_tensor({4}, DType::kFloat64, 2);
  const Tensor bias = random_tensor({4}, DType::kFloat64, 3);
  // Numbers whose derivatives are of the order of 1.
  constexpr double kEpsilon = 0.1;
  const auto cube = [](const Tensor& y) { return mul(y, mul(y, y)); };
  expect_second_gradients([&](const auto& in) { return cube(layer_norm(in[0], {4}, in[1], in[2], kEpsilon)); },
                          {x, weight, bias});
  expect_second_gradients([&](const auto& in) { return cube(layer_norm(in[0], {3, 4}, {}, {}, kEpsilon)); }, {x});
  expect_second_gradients([&](const auto& in) { return cube(rms_norm(in[0], {4}, in[1], kEpsilon)); }, {x, weight});
  expect_second_gradients([&](const auto& in) { return cube(group_norm(in[0], 2, in[1], in[2], kEpsilon)); },
                          {x, weight, bias});
  expect_second_gradients([&](const auto& in) { return cube(instance_norm(in[0], in[1], in[2], kEpsilon)); },
                          {x, weight, bias});
}

TEST(Normalization, RefusesWhatDoesNotFit) {
  const auto zeros = [](const Shape& shape) { return Tensor::zeros(shape, DType::kFloat32); };
  const Tensor x = zeros({2, 3, 6});
  EXPECT_THROW(layer_norm(x, {5}), ShapeError);
  EXPECT_THROW(layer_norm(x, {}), ShapeError);
  EXPECT_THROW(layer_norm(x, {1, 2, 3, 6}), ShapeError);
  EXPECT_THROW(layer_norm(x, {3, 6}, zeros({6})), ShapeError);
  EXPECT_THROW(layer_norm(x, {6}, zeros({6}), zeros({5})), ShapeError);
  EXPECT_THROW(rms_norm(x, {6}, zeros({3})), ShapeError);
  EXPECT_THROW(group_norm(x, 4), ShapeError);
  EXPECT_THROW(group_norm(x, 0), ShapeError);
  EXPECT_THROW(group_norm(x, 2, zeros({5})), ShapeError);
  EXPECT_THROW(group_norm(zeros({6}), 2), ShapeError);
  EXPECT_THROW(instance_norm(zeros({2, 1, 6})), ShapeError) << "one pixel has no variance";
}

}  // namespace
}  // namespace lockstep::ops
