// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/geometry/spatial.h"

#include <gtest/gtest.h>

#include <string>

#include "runtime/base/error.h"
#include "runtime/kernels/geometry/check.h"

namespace lockstep::kernels {
namespace {

TEST(Check, MakesATextWhenItIsNeeded) {
  int made = 0;
  const auto text = [&made] { return "number " + std::to_string(++made); };
  Check("test").that(true, text).that(true, "a literal");
  EXPECT_EQ(made, 0);
  try {
    Check("test").that(false, text);
    FAIL();
  } catch (const ShapeError& error) {
    EXPECT_NE(std::string(error.what()).find("test: number 1"), std::string::npos) << error.what();
  }
}

TEST(Geometry, OutputExtentRoundsDown) {
  EXPECT_EQ(output_extent(8, 3, 1, 1, 1), 8);
  EXPECT_EQ(output_extent(8, 3, 2, 1, 1), 4);
  EXPECT_EQ(output_extent(7, 3, 1, 0, 3), 1);
  EXPECT_EQ(output_extent(1, 1, 5, 0, 1), 1);
}

TEST(Geometry, OutputExtentRefusesWhatLeavesNothing) {
  EXPECT_THROW(output_extent(2, 3, 1, 0, 1), ShapeError);
  EXPECT_THROW(output_extent(6, 3, 1, 0, 3), ShapeError);
  EXPECT_THROW(output_extent(0, 1, 1, 1, 1), ShapeError);
  EXPECT_THROW(output_extent(4, 0, 1, 0, 1), ShapeError);
  EXPECT_THROW(output_extent(4, 2, 0, 0, 1), ShapeError);
  EXPECT_THROW(output_extent(4, 2, 1, -1, 1), ShapeError);
  EXPECT_THROW(output_extent(4, 2, 1, 0, 0), ShapeError);
}

TEST(Geometry, ConvOutputShapeFollowsEveryDimension) {
  EXPECT_EQ(conv_output_shape({5, 9, 3}, {4, 3, 3}, {.spatial_rank = 1, .stride = {2, 1, 1}}), Shape({5, 4, 4}));
  EXPECT_EQ(conv_output_shape({0, 8, 6, 4}, {6, 3, 1, 2}, {.stride = {2, 1, 1}, .padding = {1, 0, 0}, .groups = 2}),
            Shape({0, 4, 6, 6}));
  EXPECT_EQ(conv_output_shape({1, 4, 5, 6, 2}, {3, 2, 2, 2, 2}, {.spatial_rank = 3}), Shape({1, 3, 4, 5, 3}));
}

TEST(Geometry, ConvOutputShapeNamesWhatDoesNotFit) {
  EXPECT_THROW(conv_output_shape({5, 9}, {4, 3, 3}, {.spatial_rank = 1}), ShapeError);
  EXPECT_THROW(conv_output_shape({5, 9, 3}, {4, 3}, {.spatial_rank = 1}), ShapeError);
  EXPECT_THROW(conv_output_shape({5, 9, 3}, {4, 3, 3}, {.spatial_rank = 0}), ShapeError);
  EXPECT_THROW(conv_output_shape({5, 9, 3}, {4, 3, 3}, {.spatial_rank = 1, .groups = 0}), ShapeError);
  EXPECT_THROW(conv_output_shape({5, 9, 4}, {3, 3, 2}, {.spatial_rank = 1, .groups = 2}), ShapeError);
  try {
    conv_output_shape({5, 9, 3}, {4, 3, 2}, {.spatial_rank = 1});
    FAIL() << "no error";
  } catch (const ShapeError& error) {
    EXPECT_NE(std::string(error.what()).find("[5, 9, 3]"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("[4, 3, 2]"), std::string::npos) << error.what();
  }
}

TEST(Geometry, ConvTransposeOutputShapeIsAnInputOfTheConvolution) {
  for (const std::int64_t stride : {1, 2, 3}) {
    for (const std::int64_t padding : {0, 1, 2}) {
      for (const std::int64_t dilation : {1, 2, 3}) {
        for (std::int64_t extra = 0; extra < stride; ++extra) {
          const ConvGeometry geometry{.stride = {stride, 1}, .padding = {padding, 0}, .dilation = {dilation, 1}};
          const Shape x{2, 4, 3, 6}, weight{6, 3, 2, 5};
          const Shape y = conv_transpose_output_shape(x, weight, geometry, {extra, 0});
          EXPECT_EQ(y[1], 3 * stride - 2 * padding + 2 * dilation + 1 + extra);
          EXPECT_EQ(conv_output_shape(y, weight, geometry), x) << y.str();
        }
      }
    }
  }
  EXPECT_EQ(conv_transpose_output_shape({0, 4, 6}, {6, 3, 2}, {.spatial_rank = 1, .groups = 3}, {}), Shape({0, 6, 6}));
}

TEST(Geometry, ConvTransposeOutputShapeNamesWhatDoesNotFit) {
  const Shape x{2, 4, 6}, weight{6, 3, 2};
  const auto refusal = [](const Shape& input, const Shape& kernel, ConvGeometry geometry, std::int64_t extra) {
    geometry.spatial_rank = 1;
    try {
      return "no error: " + conv_transpose_output_shape(input, kernel, geometry, {extra}).str();
    } catch (const ShapeError& error) {
      return std::string(error.what());
    }
  };
  const auto expect = [](const std::string& found, const std::string& part) {
    EXPECT_NE(found.find(part), std::string::npos) << found;
  };
  expect(refusal({4, 6}, weight, {}, 0), "x must be [N, 1 spatial extents, C]");
  expect(refusal(x, {6, 2}, {}, 0), "[C, kernel..., O / groups]");
  expect(refusal(x, {4, 3, 2}, {}, 0), "do not fit 1 groups");
  expect(refusal(x, weight, {.groups = 4}, 0), "C a multiple of groups");
  expect(refusal(x, weight, {.groups = 0}, 0), "groups");
  expect(refusal(x, weight, {.stride = {2}}, 2), "less than the stride 2, found 2");
  expect(refusal(x, weight, {.dilation = {3}}, 1), "less than the stride 1, found 1");
  expect(refusal(x, weight, {}, -1), "found -1");
  expect(refusal(x, weight, {.stride = {0}}, 0), "at least 1");
  expect(refusal(x, weight, {.padding = {3}}, 0), "nothing is left of an extent of 4");
  expect(refusal({2, 0, 6}, weight, {.stride = {3}}, 2), "nothing is left of an extent of 0");
}

TEST(Geometry, PoolOutputShapeKeepsImagesAndChannels) {
  const PoolGeometry geometry{.window = {3, 2, 1}, .stride = {2, 2, 1}, .padding = {1, 1, 0}};
  EXPECT_EQ(pool_output_shape({2, 7, 4, 5}, geometry), Shape({2, 4, 3, 5}));
  EXPECT_THROW(pool_output_shape({2, 7, 5}, geometry), ShapeError);
}

TEST(Geometry, APoolingWindowMustTouchTheImage) {
  EXPECT_THROW(pool_output_shape({1, 4, 1}, {.spatial_rank = 1, .window = {2, 1, 1}, .padding = {2, 0, 0}}),
               ShapeError);
}

}  // namespace
}  // namespace lockstep::kernels
