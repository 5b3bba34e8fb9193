// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "runtime/kernels/backend.h"
#include "runtime/tensor/error.h"

namespace lockstep::kernels {
namespace {

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
