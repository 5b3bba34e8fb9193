// SPDX-License-Identifier: Apache-2.0
// Recorded backwards are made of operations whose own ones are: gradients of any order.
#include <gtest/gtest.h>

#include "tests/runtime/ops/operation_fixture.h"

namespace lockstep::ops {
namespace {

using kernels::testing::random_tensor;

/// The sum of the squared gradients of a function, so that its second gradients are made of third ones.
lockstep::testing::Function squared_gradients_of(const lockstep::testing::Function& function) {
  return [function](const std::vector<Tensor>& in) {
    const Tensor y = function(in);
    const Tensor weights = lockstep::testing::output_gradient(y);
    Tensor total = Tensor::zeros({}, DType::kFloat64);
    for (const Tensor& gradient : autograd::grad(y, in, weights, {.create_graph = true})) {
      total = add(total, sum(mul(gradient, gradient)));
    }
    return total;
  };
}

void expect_third_gradients(const lockstep::testing::Function& function, const std::vector<Tensor>& inputs,
                            const std::source_location& where = std::source_location::current()) {
  lockstep::testing::expect_second_gradients(squared_gradients_of(function), inputs,
                                             {.relative = 1e-5, .absolute = 1e-5}, where);
}

TEST(ThirdGradients, OfProducts) {
  const Tensor x = random_tensor({2, 3}, DType::kFloat64, 1), weight = random_tensor({4, 3}, DType::kFloat64, 2),
               bias = random_tensor({4}, DType::kFloat64, 3);
  for (const auto activation : {kernels::Activation::kGelu, kernels::Activation::kGeluTanh, kernels::Activation::kTanh,
                                kernels::Activation::kSigmoid}) {
    expect_third_gradients([activation](const auto& in) { return linear(in[0], in[1], in[2], activation); },
                           {x, weight, bias});
  }
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      const Tensor a =
          transpose_a ? random_tensor({2, 3, 2}, DType::kFloat64, 1) : random_tensor({2, 2, 3}, DType::kFloat64, 1);
      const Tensor b =
          transpose_b ? random_tensor({2, 4, 3}, DType::kFloat64, 2) : random_tensor({2, 3, 4}, DType::kFloat64, 2);
      expect_third_gradients([=](const auto& in) { return matmul(in[0], transpose_a, in[1], transpose_b); }, {a, b});
    }
  }
}

TEST(ThirdGradients, OfConvolutions) {
  const kernels::ConvGeometry geometry{.stride = {2, 1, 1}, .padding = {1, 1, 0}};
  const Tensor x = random_tensor({2, 4, 3, 2}, DType::kFloat64, 1);
  expect_third_gradients([&](const auto& in) { return conv(in[0], in[1], {}, geometry); },
                         {x, random_tensor({3, 3, 2, 2}, DType::kFloat64, 2)});
  expect_third_gradients(
      [&](const auto& in) {
        return conv_transpose(in[0], in[1], {}, geometry, {1, 0});
      },
      {x, random_tensor({2, 3, 2, 3}, DType::kFloat64, 2)});
}

TEST(ThirdGradients, OfPooling) {
  const Tensor x = random_tensor({2, 4, 3, 2}, DType::kFloat64, 1);
  for (const kernels::PoolKind kind : {kernels::PoolKind::kMax, kernels::PoolKind::kAverage}) {
    const kernels::PoolGeometry geometry{.kind = kind, .window = {3, 2, 1}, .stride = {2, 1, 1}, .padding = {1, 0, 0}};
    expect_third_gradients([&](const auto& in) { return pool(mul(mul(in[0], in[0]), in[0]), geometry); }, {x});
  }
  expect_third_gradients([](const auto& in) { return global_average_pool(mul(mul(in[0], in[0]), in[0])); }, {x});
}

TEST(ThirdGradients, OfBatchNorm) {
  const Tensor x = random_tensor({5, 3}, DType::kFloat64, 1), residual = random_tensor({5, 3}, DType::kFloat64, 4);
  const Tensor gamma = random_tensor({3}, DType::kFloat64, 2, 0.5, 1.5), beta = random_tensor({3}, DType::kFloat64, 3);
  expect_third_gradients(
      [&](const auto& in) { return batch_norm(in[0], in[1], beta, residual, {}, {}, {.relu = true}); }, {x, gamma});
}

TEST(ThirdGradients, OfSoftmaxAndLosses) {
  const Tensor x = random_tensor({3, 4}, DType::kFloat64, 1, -2, 2);
  const Tensor classes = Tensor::from<std::int64_t>({0, 3, 1}, {3});
  expect_third_gradients([](const auto& in) { return softmax(in[0]); }, {x});
  expect_third_gradients([](const auto& in) { return log_softmax(in[0]); }, {x});
  expect_third_gradients([&](const auto& in) { return cross_entropy(in[0], classes, {.label_smoothing = 0.1}); }, {x});
  expect_third_gradients([](const auto& in) { return mse(mul(in[0], in[0]), in[1]); },
                         {x, random_tensor({3, 4}, DType::kFloat64, 2)});
}

}  // namespace
}  // namespace lockstep::ops
