// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "amp/autocast/autocast.h"
#include "tests/runtime/ops/operation_fixture.h"

namespace lockstep::ops {
namespace {

using kernels::testing::random_tensor;
using kernels::testing::values_of;
using lockstep::testing::expect_second_gradients;
using ops::testing::AllTypes;
using ops::testing::OnName;
using ops::testing::OperationTest;

template <class T>
using EmbeddingOperations = OperationTest<T>;
TYPED_TEST_SUITE(EmbeddingOperations, AllTypes, OnName);

TYPED_TEST(EmbeddingOperations, LooksRowsUp) {
  const Tensor weight = this->random({5, 3}, 1);
  const auto check = [&](const Tensor& indices, std::optional<std::int64_t> padding) {
    this->check([&](const auto& in) { return embedding(in[0], indices.to(in[0].device()), padding); }, {weight},
                {.terms = 6});
  };
  check(Tensor::from<std::int64_t>({4, 0, 4, 4, 2, 1}, {2, 3}), {});
  check(Tensor::from<std::int64_t>({3}, {}), {});
  check(Tensor::from<std::int64_t>({}, {0}), {});
  check(Tensor::from<std::int64_t>({}, {4, 0}), {});
}

TYPED_TEST(EmbeddingOperations, ThePaddingRowIsReadAndGetsNoGradient) {
  const Tensor weight = this->leaf(this->random({5, 3}, 1));
  const Tensor indices = Tensor::from<std::int64_t>({4, 1, 4}, {3}).to(this->kDevice);
  for (const std::int64_t padding : {4, -1}) {
    const Tensor y = embedding(weight, indices, padding);
    const std::vector<double> rows = values_of(y), table = values_of(weight);
    EXPECT_EQ(rows[0], table[12]);
    const std::vector<double> gradient =
        values_of(autograd::grad(y, {weight}, lockstep::testing::output_gradient(y)).front());
    for (std::size_t i = 0; i < gradient.size(); ++i) EXPECT_EQ(gradient[i] != 0, i / 3 == 1) << i;
  }
}

TYPED_TEST(EmbeddingOperations, KeepTheDtypeOfTheTableUnderAutocast) {
  const amp::Autocast autocast(DType::kFloat16);
  const Tensor weight = this->random({5, 3}, 1).to(this->kDevice);
  EXPECT_EQ(embedding(weight, Tensor::from<std::int64_t>({1}, {1}).to(this->kDevice)).dtype(), weight.dtype());
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
