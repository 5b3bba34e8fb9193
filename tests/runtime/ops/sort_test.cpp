// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/sort.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/runtime/kernels/loops/loops_fixture.h"
#include "tests/runtime/ops/operation_fixture.h"

namespace lockstep::ops {
namespace {

using ::testing::ElementsAre;

class SortTest : public ops::testing::OperationTest {};
INSTANTIATE_TEST_SUITE_P(On, SortTest, ops::testing::kAllTypes, ops::testing::name_of_on);

TEST_P(SortTest, ValuesAndTheirGradients) {
  for (const Shape& shape : {Shape{5, 3, 4}, Shape{1, 3, 1}, Shape{2, 0, 3}, Shape{0, 3, 2}}) {
    const Tensor x = random(shape, 1);
    for (const int dim : {0, 1, -1}) {
      check([&](const auto& in) { return sort(in[0], dim, dim == 0).values; }, {x});
    }
    check([](const auto& in) { return topk(in[0], 2, 1).values; }, {random({4, 3, 2}, 2)});
  }
}

std::vector<double> elements(const Tensor& tensor) { return kernels::testing::values_of(tensor); }

TEST_P(SortTest, EqualElementsKeepTheirOrder) {
  const Tensor x = Tensor::from<float>({2, 1, 2, 0, 1, 2}, {6}).to(dtype()).to(device());
  const Sorted up = sort(x);
  EXPECT_THAT(elements(up.values), ElementsAre(0, 1, 1, 2, 2, 2));
  EXPECT_THAT(elements(up.indices), ElementsAre(3, 1, 4, 0, 2, 5));
  EXPECT_THAT(elements(argsort(x, 0, true)), ElementsAre(0, 2, 5, 1, 4, 3));
  EXPECT_THAT(elements(topk(x, 4).indices), ElementsAre(0, 2, 5, 1));
  EXPECT_THAT(elements(topk(x, 2, 0, false).indices), ElementsAre(3, 1));
}

TEST_P(SortTest, NaNIsGreaterThanEveryNumberAndZerosAreEqual) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();
  const Tensor x =
      Tensor::from<float>({kNaN, 0.0f, -0.0f, kInfinity, -kNaN, -kInfinity, -1}, {7}).to(dtype()).to(device());
  EXPECT_THAT(elements(argsort(x)), ElementsAre(5, 6, 1, 2, 3, 0, 4));
  EXPECT_THAT(elements(argsort(x, -1, true)), ElementsAre(0, 4, 3, 1, 2, 6, 5));
  EXPECT_TRUE(std::isnan(elements(topk(x, 1).values)[0]));
}

TEST_P(SortTest, TakesWhatStdStableSortTakes) {
  for (const auto& [shape, dim] : {std::pair{Shape{3, 500, 7}, 1}, {Shape{1, 4000}, 1}, {Shape{700, 5}, 1}}) {
    const Tensor x = random(shape, 3);
    const Tensor first = transpose(x, dim, -1), sorted = transpose(argsort(x.to(device()), dim).to(kCpu), dim, -1);
    const std::vector<double> values = elements(first), places = elements(sorted);
    const auto n = static_cast<std::size_t>(first.shape().back());
    for (std::size_t line = 0; line < values.size(); line += n) {
      std::vector<double> order(n);
      for (std::size_t i = 0; i < n; ++i) order[i] = static_cast<double>(i);
      std::ranges::stable_sort(order, {}, [&](double at) { return values[line + static_cast<std::size_t>(at)]; });
      ASSERT_TRUE(std::equal(order.begin(), order.end(), places.begin() + static_cast<std::ptrdiff_t>(line)));
    }
  }
}

TEST(Sort, OrdersIntegersThatFloatingNumbersCannotTellApart) {
  const std::int64_t big = std::int64_t{1} << 60;
  const Tensor x = Tensor::from<std::int64_t>({big + 1, -big, big, -big - 1}, {4});
  const Sorted sorted = sort(x);
  EXPECT_EQ(sorted.values.dtype(), DType::kInt64);
  EXPECT_THAT(sorted.values.as<std::int64_t>(), ElementsAre(-big - 1, -big, big, big + 1));
  const Tensor bytes = Tensor::from<float>({200, 3, 255, 3}, {4}).to(DType::kUInt8);
  EXPECT_THAT(elements(sort(bytes, 0, true).values), ElementsAre(255, 200, 3, 3));
  EXPECT_THAT(elements(argsort(bytes.to(DType::kBool))), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(elements(argsort(Tensor::from<float>({-3, 3, -4}, {3}).to(DType::kInt32))), ElementsAre(2, 0, 1));
}

TEST(Sort, OfAScalarIsTheScalar) {
  const Tensor x = Tensor::from<float>({7}, {});
  EXPECT_EQ(sort(x).values.item(), 7);
  EXPECT_EQ(sort(x).indices.shape(), Shape());
  EXPECT_EQ(topk(x, 1).values.item(), 7);
}

TEST(Sort, RefusesWhatIsNotThere) {
  const Tensor x = Tensor::zeros({2, 3}, DType::kFloat32);
  EXPECT_THROW(static_cast<void>(sort(x, 2)), ShapeError);
  EXPECT_THROW(static_cast<void>(sort(Tensor())), UsageError);
  EXPECT_THROW(static_cast<void>(topk(x, 4)), ShapeError);
  EXPECT_THROW(static_cast<void>(topk(x, -1)), ShapeError);
  EXPECT_EQ(topk(x, 0).values.shape(), (Shape{2, 0}));
}

}  // namespace
}  // namespace lockstep::ops
