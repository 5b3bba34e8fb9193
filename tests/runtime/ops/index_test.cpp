// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/index.h"

#include <gmock/gmock.h>

#include "runtime/autograd/engine.h"
#include "tests/runtime/ops/operation_fixture.h"

namespace lockstep::ops {
namespace {

using kernels::testing::values_of;
using lockstep::devices::device;
using ::testing::ElementsAre;

/// 0, 1, ..., 23 as [2, 3, 4].
Tensor cube() { return arange(24, {DType::kFloat32, device()}).reshaped({2, 3, 4}); }

TEST(Index, TakesNumbersAndRangesByPythonsRules) {
  const Tensor x = cube();
  EXPECT_THAT(values_of(x(1, 2, 3)), ElementsAre(23));
  EXPECT_EQ(x(1, 2, 3).shape(), Shape());
  EXPECT_THAT(values_of(x(-1, 0)), ElementsAre(12, 13, 14, 15));
  EXPECT_THAT(values_of(x(0, Slice{}, 1)), ElementsAre(1, 5, 9));
  EXPECT_THAT(values_of(x(0, Slice{1}, Slice{0, 4, 2})), ElementsAre(4, 6, 8, 10));
  EXPECT_THAT(values_of(x(Slice{0, -1}, Slice{-2, 99}, -1)), ElementsAre(7, 11));
  EXPECT_EQ(x(Slice{1, 1}).shape(), (Shape{0, 3, 4}));
  EXPECT_EQ(x(Slice{2, 1}).shape(), (Shape{0, 3, 4}));
}

TEST(Index, AnEllipsisStandsForTheOtherDimensionsAndANewAxisForNone) {
  const Tensor x = cube();
  EXPECT_THAT(values_of(x(Ellipsis{}, 3)), ElementsAre(3, 7, 11, 15, 19, 23));
  EXPECT_EQ(x(1, Ellipsis{}, 0).shape(), (Shape{3}));
  EXPECT_EQ(x(Ellipsis{}, 1, 1, 1).shape(), Shape()) << "none are left";
  EXPECT_EQ(x(NewAxis{}, 0, Slice{}, NewAxis{}).shape(), (Shape{1, 3, 1, 4}));
  EXPECT_EQ(x().shape(), x.shape());
}

TEST(Index, ARangeOfRowsSharesTheData) {
  const Tensor x = cube();
  EXPECT_TRUE(x(1).aliases(x[1]));
  EXPECT_TRUE(x(Slice{1}).aliases(x[1]));
  EXPECT_TRUE(x(1, Slice{2}).aliases(x[1][2]));
}

TEST(Index, TakesEveryDtype) {
  for (const DType dtype : {DType::kInt64, DType::kInt32, DType::kUInt8, DType::kFloat16, DType::kFloat64}) {
    const Tensor y = cube().to(dtype)(1, Slice{}, 2);
    EXPECT_EQ(y.dtype(), dtype);
    EXPECT_THAT(values_of(y), ElementsAre(14, 18, 22));
  }
}

TEST(Index, GradientsFlowToTheElementsThatWereTaken) {
  const Tensor x = cube();
  x.set_requires_grad(true);
  sum(x(1, Slice{0, 3, 2}, 3) * 2).backward();
  std::vector<double> expected(24, 0.0);
  expected[15] = expected[23] = 2;
  EXPECT_EQ(values_of(x.grad()), expected);
}

TEST(Index, RefusesPlacesThatAreNotThere) {
  const Tensor x = cube();
  EXPECT_THROW((void)x(2), ShapeError);
  EXPECT_THROW((void)x(0, -4), ShapeError);
  EXPECT_THROW((void)x(0, 0, 0, 0), ShapeError);
  EXPECT_THROW((void)x(Slice{0, 2, 0}), ShapeError);
  EXPECT_THROW((void)x(Ellipsis{}, Ellipsis{}), UsageError);
  EXPECT_THROW((void)index({}, {0}), UsageError);
}

}  // namespace
}  // namespace lockstep::ops
