// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "amp/autocast/autocast.h"
#include "tests/runtime/ops/operation_fixture.h"

namespace lockstep::ops {
namespace {

using kernels::testing::random_tensor;
using kernels::testing::values_of;
using lockstep::testing::expect_second_gradients;
using ops::testing::kAllTypes;
using ops::testing::name_of_on;
using ops::testing::OperationTest;

using EmbeddingOperations = OperationTest;
INSTANTIATE_TEST_SUITE_P(On, EmbeddingOperations, kAllTypes, name_of_on);

TEST_P(EmbeddingOperations, LooksRowsUp) {
  const Tensor weight = random({5, 3}, 1);
  const auto look_up = [&](const Tensor& indices, std::optional<std::int64_t> padding) {
    check([&](const auto& in) { return embedding(in[0], indices.to(in[0].device()), padding); }, {weight},
          {.terms = 6});
  };
  look_up(Tensor::from<std::int64_t>({4, 0, 4, 4, 2, 1}, {2, 3}), {});
  look_up(Tensor::from<std::int64_t>({3}, {}), {});
  look_up(Tensor::from<std::int64_t>({}, {0}), {});
  look_up(Tensor::from<std::int64_t>({}, {4, 0}), {});
}

TEST_P(EmbeddingOperations, ThePaddingRowIsReadAndGetsNoGradient) {
  const Tensor weight = leaf(random({5, 3}, 1));
  const Tensor indices = Tensor::from<std::int64_t>({4, 1, 4}, {3}).to(device());
  for (const std::int64_t padding : {4, -1}) {
    const Tensor y = embedding(weight, indices, padding);
    const std::vector<double> rows = values_of(y), table = values_of(weight);
    EXPECT_EQ(rows[0], table[12]);
    const std::vector<double> gradient =
        values_of(autograd::grad(y, {weight}, lockstep::testing::output_gradient(y)).front());
    for (std::size_t i = 0; i < gradient.size(); ++i) EXPECT_EQ(gradient[i] != 0, i / 3 == 1) << i;
  }
}

TEST_P(EmbeddingOperations, KeepTheDtypeOfTheTableUnderAutocast) {
  const amp::Autocast autocast(DType::kFloat16);
  const Tensor weight = random({5, 3}, 1).to(device());
  EXPECT_EQ(embedding(weight, Tensor::from<std::int64_t>({1}, {1}).to(device())).dtype(), weight.dtype());
}

TEST(Embedding, SecondGradients) {
  const Tensor weight = random_tensor({5, 3}, DType::kFloat64, 1);
  const Tensor indices = Tensor::from<std::int64_t>({4, 0, 4, 2}, {2, 2});
  for (const std::optional<std::int64_t> padding : {std::optional<std::int64_t>{}, std::optional<std::int64_t>{4}}) {
    expect_second_gradients(
        [&](const auto& in) {
          const Tensor rows = embedding(in[0], indices, padding);
          return mul(rows, mul(rows, rows));
        },
        {weight});
  }
}

TEST(Embedding, RefusesWhatDoesNotFit) {
  const Tensor weight = Tensor::zeros({5, 3}, DType::kFloat32);
  const auto at = [](std::int64_t index) { return Tensor::from<std::int64_t>({0, index}, {2}); };
  EXPECT_THROW(embedding(weight, at(5)), UsageError);
  EXPECT_THROW(embedding(weight, at(-1)), UsageError);
  EXPECT_THROW(embedding(weight, at(1), 5), UsageError);
  EXPECT_THROW(embedding(weight, at(1), -6), UsageError);
  EXPECT_THROW(embedding(Tensor::zeros({5}, DType::kFloat32), at(1)), ShapeError);
  EXPECT_THROW(embedding(weight, Tensor::zeros({2}, DType::kFloat32)), ShapeError);
}

}  // namespace
}  // namespace lockstep::ops
