// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/shape.h"

#include <gtest/gtest.h>

#include "runtime/base/error.h"

namespace lockstep {
namespace {

TEST(Shape, CountsElementsAndRows) {
  const Shape shape{2, 3, 4};
  EXPECT_EQ(shape.rank(), 3);
  EXPECT_EQ(shape.numel(), 24);
  EXPECT_EQ(shape.rows(), 6);
  EXPECT_EQ(shape.front(), 2);
  EXPECT_EQ(shape.back(), 4);
  EXPECT_EQ(shape.str(), "[2, 3, 4]");
}

TEST(Shape, AScalarHasOneElementAndNoDimension) {
  const Shape scalar;
  EXPECT_EQ(scalar.rank(), 0);
  EXPECT_EQ(scalar.numel(), 1);
  EXPECT_EQ(scalar.rows(), 1);
  EXPECT_EQ(scalar.str(), "[]");
  EXPECT_THROW(scalar.back(), ShapeError);
}

TEST(Shape, AnExtentMayBeZero) {
  const Shape empty{0, 7};
  EXPECT_EQ(empty.numel(), 0);
  EXPECT_EQ(empty.rows(), 0);
  EXPECT_EQ(Shape({3, 0}).rows(), 3);
}

TEST(Shape, NegativeDimensionsCountFromTheEnd) {
  const Shape shape{5, 6, 7};
  EXPECT_EQ(shape[-1], 7);
  EXPECT_EQ(shape[-3], 5);
  EXPECT_THROW(shape[3], ShapeError);
  EXPECT_THROW(shape[-4], ShapeError);
}

TEST(Shape, WithReplacesOneExtent) {
  EXPECT_EQ(Shape({2, 3}).with(0, 9), Shape({9, 3}));
  EXPECT_EQ(Shape({2, 3}).with(-1, 0), Shape({2, 0}));
  EXPECT_THROW(Shape({2, 3}).with(2, 1), ShapeError);
}

TEST(Shape, EqualShapesHaveEqualRankAndExtents) {
  EXPECT_EQ(Shape({2, 3}), Shape({2, 3}));
  EXPECT_NE(Shape({2, 3}), Shape({3, 2}));
  EXPECT_NE(Shape({2}), Shape({2, 1}));
  EXPECT_NE(Shape(), Shape({1}));
}

TEST(Shape, RefusesWhatIsNoShape) {
  EXPECT_THROW(Shape({2, -1}), ShapeError);
  EXPECT_THROW(Shape({1, 1, 1, 1, 1, 1, 1}), ShapeError);
  EXPECT_THROW(Shape({1LL << 40, 1LL << 40}), ShapeError);
}

}  // namespace
}  // namespace lockstep
