// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/runtime/ops/operation_fixture.h"

namespace lockstep::ops {
namespace {

using kernels::testing::random_tensor;
using lockstep::testing::expect_second_gradients;

TEST(SecondGradients, OfElementwiseOperations) {
  const Tensor a = random_tensor({3, 2}, DType::kFloat64, 1), b = random_tensor({3, 2}, DType::kFloat64, 2);
  expect_second_gradients([](const auto& in) { return mul(mul(in[0], in[1]), in[0]); }, {a, b});
  expect_second_gradients([](const auto& in) { return add(in[0], scale(in[1], 3)); }, {a, b});
}

TEST(SecondGradients, OfReductions) {
  const Tensor a = random_tensor({3, 2}, DType::kFloat64, 1);
  expect_second_gradients([](const auto& in) { return mul(sum(mul(in[0], in[0])), mean(in[0])); }, {a});
}

TEST(SecondGradients, OfFunctionsOfOneNumber) {
  using Function = Tensor (*)(const Tensor&);
  const std::pair<const char*, Function> functions[] = {{"relu", relu},
                                                        {"gelu", gelu},
                                                        {"gelu_tanh", gelu_tanh},
                                                        {"tanh", tanh},
                                                        {"sigmoid", sigmoid},
                                                        {"neg", neg},
                                                        {"abs", abs},
                                                        {"sqrt", sqrt},
                                                        {"rsqrt", rsqrt},
                                                        {"reciprocal", reciprocal},
                                                        {"exp", exp},
                                                        {"expm1", expm1},
                                                        {"log", log},
                                                        {"log1p", log1p},
                                                        {"log2", log2},
                                                        {"log10", log10},
                                                        {"sin", sin},
                                                        {"cos", cos},
                                                        {"tan", tan},
                                                        {"sinh", sinh},
                                                        {"cosh", cosh},
                                                        {"asin", asin},
                                                        {"acos", acos},
                                                        {"atan", atan},
                                                        {"erf", erf},
                                                        {"erfinv", erfinv},
                                                        {"sign", sign},
                                                        {"round", round},
                                                        {"silu", silu}};
  for (const auto& [name, function] : functions) {
    SCOPED_TRACE(name);
    expect_second_gradients([f = function](const auto& in) { return f(in[0]); },
                            {random_tensor({3, 2}, DType::kFloat64, 1, 0.3, 0.9)});
  }
}

TEST(SecondGradients, OfFunctionsWithParameters) {
  const Tensor x = random_tensor({3, 4}, DType::kFloat64, 1, -2, 2);
  expect_second_gradients([](const auto& in) { return leaky_relu(in[0], 0.2); }, {x});
  expect_second_gradients([](const auto& in) { return elu(in[0], 1.5); }, {x});
  expect_second_gradients([](const auto& in) { return softplus(in[0], 2, 3); }, {x});
  expect_second_gradients([](const auto& in) { return clamp(in[0], -1, 1); }, {x});
  expect_second_gradients([](const auto& in) { return mul(clamp(in[0], -1, 1), in[0]); }, {x});
}

TEST(SecondGradients, OfBroadcastOperands) {
  using Function = Tensor (*)(const Tensor&, const Tensor&);
  const std::pair<const char*, Function> functions[] = {{"add", add},         {"sub", sub},    {"mul", mul},
                                                        {"div", div},         {"pow", pow},    {"maximum", maximum},
                                                        {"minimum", minimum}, {"prelu", prelu}};
  for (const auto& [name, function] : functions) {
    SCOPED_TRACE(name);
    expect_second_gradients(
        [f = function](const auto& in) { return f(in[0], in[1]); },
        {random_tensor({3, 2}, DType::kFloat64, 1, 0.3, 0.9), random_tensor({2}, DType::kFloat64, 2, 0.4, 1.2)});
  }
  for (const Shape& shape : {Shape{3, 1}, Shape{}, Shape{2, 1, 2}}) {
    expect_second_gradients(
        [](const auto& in) { return div(in[0], in[1]); },
        {random_tensor({3, 2}, DType::kFloat64, 1), random_tensor(shape, DType::kFloat64, 2, 1, 2)});
  }
}

TEST(SecondGradients, OfNumbersAndTensors) {
  const Tensor x = random_tensor({3, 2}, DType::kFloat64, 1, 0.5, 2);
  expect_second_gradients([](const auto& in) { return sub(3, div(2, add(in[0], 1))); }, {x});
  expect_second_gradients([](const auto& in) { return div(pow(in[0], 2.5), 3); }, {x});
  expect_second_gradients([](const auto& in) { return pow(in[0], 2); }, {x});
  expect_second_gradients([](const auto& in) { return pow(2.5, in[0]); }, {x});
}

TEST(SecondGradients, OfFunctionsOfThreeNumbers) {
  const Tensor a = random_tensor({3, 2}, DType::kFloat64, 1), b = random_tensor({3, 2}, DType::kFloat64, 2),
               c = random_tensor({2}, DType::kFloat64, 3, 0.5, 2);
  expect_second_gradients([](const auto& in) { return lerp(in[0], in[1], in[2]); }, {a, b, c});
  expect_second_gradients([](const auto& in) { return addcmul(in[0], in[1], in[2], 2); }, {a, b, c});
  expect_second_gradients([](const auto& in) { return addcdiv(in[0], in[1], in[2], 2); }, {a, b, c});
  expect_second_gradients([](const auto& in) { return where(gt(in[0].detach(), 0), mul(in[0], in[1]), in[2]); },
                          {a, b, c});
  expect_second_gradients([](const auto& in) { return sum_to(mul(expand(in[0], {3, 2}), in[1]), {3, 1}); }, {c, b});
}

}  // namespace
}  // namespace lockstep::ops
