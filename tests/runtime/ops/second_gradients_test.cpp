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

}  // namespace
}  // namespace lockstep::ops
