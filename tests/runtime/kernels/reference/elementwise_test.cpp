// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/elementwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/base/error.h"
#include "runtime/kernels/functors/convert.h"
#include "runtime/kernels/pointwise.h"
#include "runtime/kernels/reductions.h"
#include "tests/runtime/kernels/numeric_gradient.h"
#include "tests/runtime/kernels/tables.h"
#include "tests/runtime/kernels/tensors.h"

namespace lockstep::kernels {
namespace {

using lockstep::testing::numeric_gradient;
using testing::expect_close;
using testing::random_tensor;
using testing::reference_of;
using testing::tensor_of;
using testing::values_of;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Tensor doubles(const std::vector<double>& values, const Shape& shape) { return Tensor::from(values, shape); }
Tensor empty(const Shape& shape, DType dtype = DType::kFloat64) { return Tensor::empty(shape, dtype); }

TEST(ReferenceElementwise, FillsEveryDtype) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kFloat64, DType::kInt64,
                            DType::kInt32, DType::kUInt8}) {
    const Tensor out = empty({3}, dtype);
    reference_of<Elementwise>().fill(out, 7);
    EXPECT_EQ(values_of(out), (std::vector<double>{7, 7, 7})) << name_of(dtype);
  }
  const Tensor flag = empty({1}, DType::kBool);
  reference_of<Elementwise>().fill(flag, 0.25);
  EXPECT_EQ(flag.item(), 1);
}

TEST(ReferenceElementwise, CastsBetweenAllDtypes) {
  const std::vector all = {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kFloat64,
                           DType::kInt64,   DType::kInt32,   DType::kUInt8,    DType::kBool};
  for (const DType from : all) {
    for (const DType to : all) {
      const Tensor out = empty({2}, to);
      reference_of<Elementwise>().cast(tensor_of({0, 1}, {2}, from), out);
      EXPECT_EQ(values_of(out), (std::vector<double>{0, 1})) << name_of(from) << " to " << name_of(to);
    }
  }
}

TEST(ReferenceElementwise, CastToAnIntegerTruncatesAndStaysInRange) {
  const Tensor out = empty({6}, DType::kInt32);
  reference_of<Elementwise>().cast(doubles({2.9, -2.9, 1e20, -kInfinity, kNaN, 0}, {6}), out);
  EXPECT_EQ(values_of(out), (std::vector<double>{2, -2, 2147483647.0, -2147483648.0, 0, 0}));
}

TEST(ReferenceElementwise, CastKeepsLargeIntegersExact) {
  const Tensor out = empty({1}, DType::kInt64);
  reference_of<Elementwise>().cast(Tensor::from<std::int64_t>({(std::int64_t{1} << 62) + 1}, {1}), out);
  EXPECT_EQ(out.as<std::int64_t>()[0], (std::int64_t{1} << 62) + 1);
}

TEST(ReferenceElementwise, RoundsOnceFromDoubleToSixteenBits) {
  // Just above the middle of two halves: through float it would land on the middle and go to the even one below.
  EXPECT_EQ(static_cast<float>(convert<Half>(1 + 0x1p-11 + 0x1p-40)), 1 + 0x1p-10f);
  EXPECT_EQ(static_cast<float>(convert<Half>(1 + 0x1p-11)), 1.0f);
  EXPECT_EQ(static_cast<float>(convert<BFloat16>(-1 - 0x1p-8 - 0x1p-40)), -1 - 0x1p-7f);
  EXPECT_EQ(static_cast<float>(convert<Half>(65519.9999999999)), 65504.0f);
  EXPECT_EQ(static_cast<float>(convert<Half>(1e300)), static_cast<float>(kInfinity));
  EXPECT_EQ(static_cast<float>(convert<Half>(0x1p-25 + 0x1p-70)), 0x1p-24f);
  EXPECT_EQ(static_cast<float>(convert<Half>(0x1p-25)), 0.0f);
  EXPECT_TRUE(std::isnan(static_cast<float>(convert<Half>(kNaN))));
}

TEST(ReferenceElementwise, AccumulatesOverDtypes) {
  const Tensor sum = tensor_of({1, 2}, {2}, DType::kFloat32);
  reference_of<Elementwise>().accumulate(tensor_of({0.5, -4}, {2}, DType::kFloat16), sum);
  EXPECT_EQ(values_of(sum), (std::vector<double>{1.5, -2}));
}

TEST(ReferenceElementwise, CopyUnlessLeavesTheOutputOnARejectedStep) {
  const Tensor in = tensor_of({1, 2}, {2}, DType::kFloat32);
  const Tensor out = tensor_of({3, 4}, {2}, DType::kFloat32);
  const float rejected = 1, accepted = 0;
  reference_of<Elementwise>().copy_unless(&rejected, in, out);
  EXPECT_EQ(values_of(out), (std::vector<double>{3, 4}));
  reference_of<Elementwise>().copy_unless(&accepted, in, out);
  EXPECT_EQ(values_of(out), (std::vector<double>{1, 2}));
}

TEST(ReferenceElementwise, AddAndMultiplyBroadcastOverRows) {
  const Tensor a = doubles({1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor row = doubles({10, 20, 30}, {3});
  const Tensor out = empty({2, 3});
  reference_of<Elementwise>().add(a, row, out);
  EXPECT_EQ(values_of(out), (std::vector<double>{11, 22, 33, 14, 25, 36}));
  reference_of<Elementwise>().multiply(a, a, out);
  EXPECT_EQ(values_of(out), (std::vector<double>{1, 4, 9, 16, 25, 36}));
  reference_of<Elementwise>().multiply(a, row, a);
  EXPECT_EQ(values_of(a), (std::vector<double>{10, 40, 90, 40, 100, 180}));
}

TEST(ReferenceElementwise, EmptyTensorsAreFine) {
  const Tensor none = empty({0, 3});
  reference_of<Elementwise>().add(none, doubles({1, 2, 3}, {3}), none);
  reference_of<Pointwise>().activate(Activation::kRelu, none, none);
  const Tensor thin = empty({3, 0});
  reference_of<Elementwise>().add(thin, empty({0}), thin);
}

TEST(ReferenceElementwise, ScaleMultipliesByBothFactors) {
  const Tensor x = doubles({1, -2}, {2});
  const float device_factor = 0.5f;
  reference_of<Elementwise>().scale(x, 3, &device_factor, x);
  EXPECT_EQ(values_of(x), (std::vector<double>{1.5, -3}));
  reference_of<Elementwise>().scale(x, 2, nullptr, x);
  EXPECT_EQ(values_of(x), (std::vector<double>{3, -6}));
}

TEST(ReferenceElementwise, ActivationsHaveTheirDefiningValues) {
  const Tensor x = doubles({-1, 0, 2, kNaN}, {4});
  const Tensor y = empty({4});
  reference_of<Pointwise>().activate(Activation::kRelu, x, y);
  expect_close(y, {0, 0, 2, kNaN}, {});
  reference_of<Pointwise>().activate(Activation::kNone, x, y);
  expect_close(y, {-1, 0, 2, kNaN}, {});
  reference_of<Pointwise>().activate(Activation::kGelu, x, y);
  // x * Phi(x) with Phi(1) = 0.841344746068543, Phi(2) = 0.977249868051821.
  expect_close(y, {-0.158655253931457, 0, 1.954499736103642, kNaN}, {.relative = 1e-14});
  reference_of<Pointwise>().activate(Activation::kTanh, x, y);
  expect_close(y, {-0.761594155955765, 0, 0.964027580075817, kNaN}, {.relative = 1e-14});
  reference_of<Pointwise>().activate(Activation::kSigmoid, x, y);
  expect_close(y, {0.268941421369995, 0.5, 0.880797077977882, kNaN}, {.relative = 1e-14});
}

TEST(ReferenceElementwise, ActivationsHaveTheirNumericGradient) {
  for (const Activation kind : {Activation::kNone, Activation::kRelu, Activation::kGelu, Activation::kGeluTanh,
                                Activation::kTanh, Activation::kSigmoid}) {
    const Tensor x = random_tensor({40}, DType::kFloat64, 1, -3, 3);
    const Tensor dy = random_tensor({40}, DType::kFloat64, 2);
    const Tensor y = empty({40});
    const Tensor product = empty({40});
    const Tensor total = empty({});
    const auto loss = [&] {
      reference_of<Pointwise>().activate(kind, x, y);
      reference_of<Elementwise>().multiply(y, dy, product);
      reference_of<Reductions>().sum(product, 1, total);
      return total.item();
    };
    const std::vector<double> expected = numeric_gradient(loss, x);
    const Tensor dx = empty({40});
    reference_of<Pointwise>().activate(kind, x, y);
    reference_of<Pointwise>().activate_backward(kind, derivative_follows_from_output(kind) ? y : x, dy, dx);
    expect_close(dx, expected, {.absolute = 1e-8});
  }
}

TEST(ReferenceElementwise, WrongShapesAndDtypesAreRefused) {
  const Elementwise& elementwise = reference_of<Elementwise>();
  const Pointwise& pointwise = reference_of<Pointwise>();
  const Tensor a = empty({2, 3});
  EXPECT_THROW(elementwise.add(a, empty({2}), a), ShapeError);
  EXPECT_THROW(elementwise.add(a, empty({3, 2}), a), ShapeError);
  EXPECT_THROW(elementwise.add(a, empty({2, 3}, DType::kFloat32), a), ShapeError);
  EXPECT_THROW(elementwise.add(a, a, empty({3, 2})), ShapeError);
  EXPECT_THROW(elementwise.add(a, Tensor(), a), ShapeError);
  EXPECT_THROW(elementwise.cast(a, empty({6})), ShapeError);
  EXPECT_THROW(elementwise.accumulate(a, empty({2, 3}, DType::kInt32)), ShapeError);
  EXPECT_THROW(elementwise.scale(a, 1, nullptr, empty({2})), ShapeError);
  EXPECT_THROW(pointwise.activate(Activation::kRelu, a, empty({2, 3}, DType::kFloat16)), ShapeError);
  EXPECT_THROW(pointwise.activate_backward(Activation::kRelu, a, empty({6}), a), ShapeError);
}

TEST(ReferenceElementwise, AShapeErrorSaysWhatWasExpectedAndFound) {
  try {
    reference_of<Pointwise>().activate(Activation::kRelu, empty({2, 3}), empty({3, 2}));
    FAIL() << "no error";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "unary: out must have shape [2, 3], found float64 [3, 2] on cpu");
  }
}

}  // namespace
}  // namespace lockstep::kernels
