// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "amp/autocast/autocast.h"
#include "runtime/ops/indexing.h"
#include "tests/runtime/kernels/loops/loops_fixture.h"
#include "tests/runtime/ops/operation_fixture.h"

namespace lockstep::ops {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class IndexPutTest : public ops::testing::OperationTest {};
INSTANTIATE_TEST_SUITE_P(On, IndexPutTest, ops::testing::kAllTypes, ops::testing::name_of_on);

Tensor places(const std::vector<std::int64_t>& values, const Shape& shape) { return Tensor::from(values, shape); }

TEST_P(IndexPutTest, WritesAndAccumulates) {
  const Tensor x = random({4, 3, 2}, 1), rows = random({3, 3, 2}, 2), elements = random({2, 1, 2}, 3);
  for (const bool accumulate : {false, true}) {
    // What is added up is rounded to 16 bits before x is added. The gradient of a value is a sum over three places.
    const ops::testing::Accuracy accuracy{.terms = 3, .intermediate_of_result = accumulate ? 1.0 : 0.0};
    check(
        [&](const auto& in) {
          const Tensor at = places({3, 0, -2}, {3}).to(in[0].device());
          return index_put(in[0], {at}, in[1], accumulate);
        },
        {x, rows}, accuracy);
    check(
        [&](const auto& in) {
          const Tensor first = places({3, 0}, {2, 1}).to(in[0].device()),
                       second = places({-1, 0, 1}, {3}).to(in[0].device());
          return index_put(in[0], {first, second}, in[1], accumulate);
        },
        {x, elements}, accuracy);
  }
}

TEST_P(IndexPutTest, KeepsTheLastOfSeveralValuesAndGivesItTheGradient) {
  const auto on = [&](std::initializer_list<float> values) {
    const std::vector<float> all = values;
    const Tensor tensor = Tensor::from(all, {static_cast<std::int64_t>(all.size())}).to(dtype()).to(device());
    tensor.set_requires_grad(true);
    return tensor;
  };
  const Tensor x = on({1, 2, 3}), values = on({10, 20, 30, 40});
  const Tensor y = index_put(x, {places({2, 0, 2, -3}, {4}).to(device())}, values);
  EXPECT_THAT(kernels::testing::values_of(y), ElementsAre(40, 2, 30));
  EXPECT_THAT(kernels::testing::values_of(x), ElementsAre(1, 2, 3));
  sum(y).backward();
  EXPECT_THAT(kernels::testing::values_of(x.grad()), ElementsAre(0, 1, 0));
  EXPECT_THAT(kernels::testing::values_of(values.grad()), ElementsAre(0, 0, 1, 1));
}

TEST(IndexPut, TakesIntegers) {
  const Tensor x = Tensor::from<std::int64_t>({1, 2, 3, 4}, {2, 2});
  const Tensor y = index_put(x, {places({1}, {1}), places({0}, {1})}, Tensor::from<std::int64_t>({-7}, {}));
  EXPECT_THAT(y.as<std::int64_t>(), ElementsAre(1, 2, -7, 4));
  EXPECT_THROW(static_cast<void>(index_put(x, {places({1}, {1})}, Tensor::from<std::int64_t>({1}, {}), true)),
               UsageError);
}

TEST(IndexPut, PromotesUnderAutocastAlone) {
  const Tensor x = Tensor::zeros({3}, DType::kFloat32), half = Tensor::zeros({1}, DType::kFloat16);
  EXPECT_THROW(static_cast<void>(index_put(x, {places({1}, {1})}, half)), UsageError);
  const amp::Autocast autocast(DType::kFloat16);
  EXPECT_EQ(index_put(x, {places({1}, {1})}, half).dtype(), DType::kFloat32);
}

TEST(IndexPut, RefusesWhatNamesNoPlace) {
  const Tensor x = Tensor::zeros({3, 2}, DType::kFloat32), value = Tensor::zeros({}, DType::kFloat32);
  const auto put = [&](const std::vector<Tensor>& indices) { static_cast<void>(index_put(x, indices, value)); };
  EXPECT_THROW(put({}), ShapeError);
  EXPECT_THROW(put({places({0}, {1}), places({0}, {1}), places({0}, {1})}), ShapeError);
  EXPECT_THROW(put({Tensor::zeros({3}, DType::kBool)}), ShapeError);
  EXPECT_THROW(put({Tensor::zeros({3}, DType::kInt32)}), ShapeError);
  EXPECT_THROW(put({Tensor()}), UsageError);
  EXPECT_THROW(put({places({0, 1}, {2}), places({0, 1, 0}, {3})}), ShapeError);
  EXPECT_THROW(static_cast<void>(index_put(x, {places({0}, {1})}, Tensor::zeros({3}, DType::kFloat32))), ShapeError);
  for (const std::int64_t outside : {3, -4}) {
    try {
      put({places({0, outside}, {2})});
      ADD_FAILURE() << "index " << outside << " was taken";
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), HasSubstr("index " + std::to_string(outside) + " of dimension 0"));
    }
  }
  EXPECT_THROW(put({places({0}, {1}), places({2}, {1})}), UsageError);
}

}  // namespace
}  // namespace lockstep::ops
