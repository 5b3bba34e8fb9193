// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/factories.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "tests/runtime/ops/operation_fixture.h"

namespace lockstep::ops {
namespace {

using kernels::testing::values_of;
using lockstep::devices::device;
using ::testing::Each;
using ::testing::ElementsAre;

Placement as(DType dtype) { return {dtype, device()}; }

TEST(Factories, FillEveryDtype) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kFloat64, DType::kInt64,
                            DType::kInt32, DType::kUInt8, DType::kBool}) {
    SCOPED_TRACE(name_of(dtype));
    const Tensor x = full({2, 3}, 1, as(dtype));
    EXPECT_EQ(x.shape(), (Shape{2, 3}));
    EXPECT_EQ(x.dtype(), dtype);
    EXPECT_EQ(x.device(), device());
    EXPECT_THAT(values_of(x), Each(1));
    EXPECT_THAT(values_of(ones_like(x)), Each(1));
    EXPECT_EQ(ones_like(x).dtype(), dtype);
    EXPECT_THAT(values_of(zeros_like(x)), Each(0));
    EXPECT_THAT(values_of(full_like(x, 0)), Each(0));
    EXPECT_EQ(new_zeros(x, {4}).shape(), (Shape{4}));
    EXPECT_EQ(new_full(x, {}, 1).dtype(), dtype);
    EXPECT_EQ(new_full(x, {}, 1).device(), device());
    EXPECT_THAT(values_of(new_full(x, {2}, 1)), Each(1));
  }
  EXPECT_THAT(values_of(full({2}, -2.5, as(DType::kFloat32))), Each(-2.5));
}

TEST(Factories, CountAndIdentity) {
  EXPECT_THAT(values_of(arange(4, as(DType::kInt64))), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(values_of(arange(4, as(DType::kFloat16))), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(arange(0, as(DType::kFloat32)).numel(), 0);
  EXPECT_THAT(values_of(eye(2, as(DType::kFloat16))), ElementsAre(1, 0, 0, 1));
  EXPECT_THROW(arange(-1), ShapeError);
}

TEST(Random, SameKeySameNumbersOfAnotherKeyOthers) {
  const auto draw = [](const kernels::RandomKey& key) { return values_of(normal({50}, key, {}, as(DType::kFloat32))); };
  EXPECT_EQ(draw({1, 2, 3}), draw({1, 2, 3}));
  EXPECT_NE(draw({1, 2, 3}), draw({2, 2, 3}));
  EXPECT_NE(draw({1, 2, 3}), draw({1, 3, 3}));
  EXPECT_NE(draw({1, 2, 3}), draw({1, 2, 4}));
}

TEST(Random, NumbersDoNotDependOnHowATensorIsSplit) {
  const kernels::RandomKey key{.seed = 7, .step = 1};
  for (const bool is_normal : {false, true}) {
    const auto draw = [&](std::int64_t n, std::int64_t first) {
      const Placement placement = as(DType::kFloat32);
      return values_of(is_normal ? normal({n}, key, {.first_element = first}, placement)
                                 : uniform({n}, key, {.first_element = first}, placement));
    };
    const std::vector<double> whole = draw(700, 0);
    for (const std::int64_t split : {1, 2, 3, 350, 513}) {
      std::vector<double> parts = draw(split, 0);
      const std::vector<double> rest = draw(700 - split, split);
      parts.insert(parts.end(), rest.begin(), rest.end());
      EXPECT_EQ(parts, whole) << split;
    }
  }
}

TEST(Random, HasTheMomentsOfItsDistribution) {
  constexpr std::int64_t kCount = 200'000;
  const auto moments = [](const Tensor& x) {
    double mean = 0, square = 0;
    const std::vector<double> values = values_of(x);
    for (const double value : values) mean += value / kCount;
    for (const double value : values) square += (value - mean) * (value - mean) / kCount;
    return std::pair(mean, square);
  };
  const auto [mean, variance] =
      moments(normal({kCount}, {.seed = 3}, {.mean = 2, .deviation = 3}, as(DType::kFloat32)));
  EXPECT_NEAR(mean, 2, 5 * 3 / std::sqrt(kCount));
  EXPECT_NEAR(variance, 9, 5 * 9 * std::sqrt(2.0 / kCount));
  const Tensor u = uniform({kCount}, {.seed = 3}, {.low = -1, .high = 3}, as(DType::kFloat32));
  const auto [middle, spread] = moments(u);
  EXPECT_NEAR(middle, 1, 5 * 4 / std::sqrt(12.0 * kCount));
  EXPECT_NEAR(spread, 16 / 12.0, 0.02);
  for (const double value : values_of(u)) ASSERT_TRUE(value >= -1 && value <= 3);
}

TEST(Random, TheTailsOfNormalNumbersAreThere) {
  std::int64_t beyond = 0;
  for (const double value : values_of(normal({200'000}, {.seed = 5}, {}, as(DType::kFloat32)))) {
    ASSERT_TRUE(std::isfinite(value));
    beyond += std::abs(value) > 3 ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(beyond), 540, 120);
}

}  // namespace
}  // namespace lockstep::ops
