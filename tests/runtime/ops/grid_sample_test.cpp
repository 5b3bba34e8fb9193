// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/grid_sample.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "amp/autocast/autocast.h"
#include "tests/runtime/kernels/loops/loops_fixture.h"
#include "tests/runtime/ops/operation_fixture.h"

namespace lockstep::ops {
namespace {

using ::testing::ElementsAre;

constexpr GridMode kModes[] = {GridMode::kLinear, GridMode::kNearest, GridMode::kCubic};
constexpr GridPadding kPaddings[] = {GridPadding::kZeros, GridPadding::kBorder, GridPadding::kReflection};

class GridSampleTest : public ops::testing::OperationTest {};
INSTANTIATE_TEST_SUITE_P(On, GridSampleTest, ops::testing::kAllTypes, ops::testing::name_of_on);

/// Points at these places of elements, in an image of 4 x 3 whose corners' centres are -1 and 1; 16 bits hold them.
Tensor points(std::initializer_list<float> elements) {
  std::vector<float> coordinates;
  for (const float element : elements) coordinates.push_back(element - 1);
  return Tensor::from(coordinates, {1, 1, static_cast<std::int64_t>(coordinates.size()) / 2, 2});
}

TEST_P(GridSampleTest, InEveryModeAndPadding) {
  const Tensor x = random({1, 3, 3, 2}, 1);
  const Tensor at = points({0.25f, 1.375f, 1.75f, 0.625f, -0.625f, 1.25f, 2.375f, 2.75f, 4.25f, -1.375f});
  for (const GridMode mode : kModes) {
    for (const GridPadding padding : kPaddings) {
      SCOPED_TRACE(static_cast<int>(mode) * 10 + static_cast<int>(padding));
      check(
          [&](const auto& in) {
            return grid_sample(in[0], in[1], {mode, padding, true});
          },
          {x, at.to(dtype()).to(device())}, {.terms = 16, .magnitude = 4});
    }
  }
}

TEST_P(GridSampleTest, WholePlacesAreTheElements) {
  const Tensor x = random({1, 3, 3, 1}, 1).to(device());
  const Tensor at = points({0, 0, 2, 1, 1, 2}).to(dtype()).to(device());
  const auto values = kernels::testing::values_of(x);
  for (const GridMode mode : kModes) {
    EXPECT_THAT(kernels::testing::values_of(grid_sample(x, at, {mode, GridPadding::kZeros, true})),
                ElementsAre(values[0], values[5], values[7]));
  }
}

TEST(GridSample, OfPointsThatAreNoNumbersIsNaNAndFarAwayIsZero) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();
  const Tensor x = ones({1, 3, 3, 1});
  const Tensor at = Tensor::from<float>({kNaN, 0, 0, kNaN, kInfinity, 0, 0, -kInfinity, 3e9f, 0}, {1, 5, 1, 2});
  for (const GridMode mode : kModes) {
    const auto values = kernels::testing::values_of(grid_sample(x, at, {.mode = mode}));
    EXPECT_TRUE(std::isnan(values[0]) && std::isnan(values[1])) << values[0] << ' ' << values[1];
    EXPECT_THAT(std::vector(values.begin() + 2, values.end()), ElementsAre(0, 0, 0));
  }
  EXPECT_THAT(kernels::testing::values_of(grid_sample(x, at, {.padding = GridPadding::kBorder})).back(), 1);
}

TEST(GridSample, TakesASampleOfItsOwnForEachGrid) {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4, 10, 20, 30, 40}, {2, 2, 2, 1});
  const Tensor at = Tensor::from<float>({-1, -1, 1, -1}, {2, 1, 1, 2});
  EXPECT_THAT(kernels::testing::values_of(grid_sample(x, at, {.align_corners = true})), ElementsAre(1, 20));
  EXPECT_EQ(grid_sample(x.rows(0, 0), at.rows(0, 0)).shape(), (Shape{0, 1, 1, 1}));
}

TEST(GridSample, PromotesUnderAutocastAlone) {
  const Tensor x = Tensor::zeros({1, 2, 2, 1}, DType::kFloat16), at = Tensor::zeros({1, 1, 1, 2}, DType::kFloat32);
  EXPECT_THROW(static_cast<void>(grid_sample(x, at)), ShapeError);
  const amp::Autocast autocast(DType::kFloat16);
  EXPECT_EQ(grid_sample(x, at).dtype(), DType::kFloat32);
}

TEST(GridSample, RefusesShapesThatDoNotFit) {
  const auto sample = [](const Shape& x, const Shape& grid, const GridOptions& options = {}) {
    static_cast<void>(grid_sample(Tensor::zeros(x, DType::kFloat32), Tensor::zeros(grid, DType::kFloat32), options));
  };
  EXPECT_THROW(sample({1, 3, 3, 1}, {1, 2, 2, 3}), ShapeError);
  EXPECT_THROW(sample({1, 3, 3, 1}, {2, 2, 2, 2}), ShapeError);
  EXPECT_THROW(sample({1, 3, 3, 1}, {1, 2, 2}), ShapeError);
  EXPECT_THROW(sample({1, 3, 1}, {1, 2, 1}), ShapeError);
  EXPECT_THROW(sample({1, 0, 3, 1}, {1, 2, 2, 2}), ShapeError);
  EXPECT_THROW(sample({1, 3, 3, 3, 1}, {1, 2, 2, 2, 3}, {.mode = GridMode::kCubic}), ShapeError);
  EXPECT_THROW(static_cast<void>(grid_sample(Tensor(), Tensor::zeros({1, 2, 2, 2}, DType::kFloat32))), UsageError);
}

}  // namespace
}  // namespace lockstep::ops
