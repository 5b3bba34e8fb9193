// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/runtime/ops/operation_fixture.h"

namespace lockstep::ops {
namespace {

using kernels::testing::values_of;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

using lockstep::devices::device;

Tensor random_there(const Shape& shape, DType dtype, std::uint32_t seed, double low = -1, double high = 1) {
  return kernels::testing::random_tensor(shape, dtype, seed, low, high).to(device());
}

template <class T>
Tensor from(const std::vector<T>& values, const Shape& shape) {
  return Tensor::from(values, shape).to(device());
}

Tensor zeros(const Shape& shape, DType dtype = DType::kFloat32) { return Tensor::zeros(shape, dtype, device()); }

TEST(Dropout, MasksDoNotDependOnHowTheBatchIsSplit) {
  const Tensor x = random_there({8, 3, 5}, DType::kFloat32, 1, 1, 2);
  const kernels::DropoutKey key{.seed = 5, .step = 3, .layer = 2};
  const std::vector<double> whole = values_of(dropout(x, 0.5, key, 40));
  for (const std::int64_t split : {1, 3, 5}) {
    std::vector<double> parts = values_of(dropout(x.rows(0, split), 0.5, key, 40));
    const std::vector<double> rest = values_of(dropout(x.rows(split, 8), 0.5, key, 40 + split));
    parts.insert(parts.end(), rest.begin(), rest.end());
    EXPECT_EQ(parts, whole) << "split at " << split;
  }
}

TEST(Dropout, MasksDifferBySeedStepAndLayer) {
  const Tensor x = random_there({16, 16}, DType::kFloat32, 1, 1, 2);
  const std::vector<double> mask = values_of(dropout(x, 0.5, {1, 1, 1}, 0));
  EXPECT_NE(values_of(dropout(x, 0.5, {2, 1, 1}, 0)), mask);
  EXPECT_NE(values_of(dropout(x, 0.5, {1, 2, 1}, 0)), mask);
  EXPECT_NE(values_of(dropout(x, 0.5, {1, 1, 2}, 0)), mask);
  EXPECT_EQ(values_of(dropout(x, 0.5, {1, 1, 1}, 0)), mask);
}

TEST(Dropout, KeepsTheExpectationAndTheShareItShould) {
  const Tensor x = from(std::vector<float>(100'000, 1.0f), {1000, 100});
  const std::vector<double> y = values_of(dropout(x, 0.3, {1, 2, 3}, 0));
  const double kept = static_cast<double>(std::ranges::count_if(y, [](double value) { return value != 0; })) / 1e5;
  EXPECT_NEAR(kept, 0.7, 5 * std::sqrt(0.3 * 0.7 / 1e5));
  for (const double value : y) ASSERT_TRUE(value == 0 || std::abs(value - 1 / 0.7) < 1e-6);
}

TEST(Dropout, OfEverythingIsZero) {
  EXPECT_THAT(values_of(dropout(random_there({3, 4}, DType::kFloat32, 1), 1.0, {}, 0)), Each(0));
}

TEST(Dropout, RefusesAProbabilityOutsideZeroToOne) {
  EXPECT_THROW(dropout(random_there({3}, DType::kFloat32, 1), 1.5, {}, 0), UsageError);
  EXPECT_THROW(dropout(random_there({3}, DType::kFloat32, 1), -0.5, {}, 0), UsageError);
}

TEST(Promotion, AddAndMulTakeTheWiderDtypeAndGiveEachOperandItsOwnGradient) {
  using Operation = Tensor (*)(const Tensor&, const Tensor&);
  for (const Operation operation : {Operation(&add), Operation(&mul)}) {
    const Tensor a = random_there({2, 3}, DType::kFloat16, 1), b = random_there({2, 3}, DType::kFloat32, 2);
    for (const Tensor& operand : {a, b}) operand.set_requires_grad(true);
    for (const auto& y : {operation(a, b), operation(b, a)}) {
      EXPECT_EQ(y.dtype(), DType::kFloat32);
      const std::vector<Tensor> grads = autograd::grad(sum(y), {a, b});
      EXPECT_EQ(grads[0].dtype(), DType::kFloat16);
      EXPECT_EQ(grads[1].dtype(), DType::kFloat32);
    }
  }
  const Tensor half = random_there({2}, DType::kFloat16, 1), brain = random_there({2}, DType::kBFloat16, 2);
  EXPECT_EQ(add(half, brain).dtype(), DType::kFloat32);
}

TEST(BatchNorm, CastsItsResidual) {
  const Tensor x = random_there({4, 3}, DType::kFloat16, 1), residual = random_there({4, 3}, DType::kFloat32, 2);
  const Tensor one = from<float>({1, 1, 1}, {3});
  residual.set_requires_grad(true);
  const Tensor y = batch_norm(x, one, one, residual, {}, {}, {});
  EXPECT_EQ(y.dtype(), DType::kFloat16);
  EXPECT_EQ(autograd::grad(y, {residual}, lockstep::testing::output_gradient(y)).front().dtype(), DType::kFloat32);
}

TEST(CrossEntropy, ReadsReducedLogitsInFloat32) {
  const Tensor logits = random_there({3, 5}, DType::kFloat16, 1, -4, 4);
  logits.set_requires_grad(true);
  const Tensor loss = cross_entropy(logits, from<std::int64_t>({0, 1, 4}, {3}));
  EXPECT_EQ(loss.dtype(), DType::kFloat32);
  EXPECT_EQ(autograd::grad(loss, {logits}).front().dtype(), DType::kFloat16);
}

TEST(Losses, SharesWithTheGlobalDivisorAddUpToTheBatchsLoss) {
  // In the precision that the device has.
  const DType dtype = device() == kCpu ? DType::kFloat64 : DType::kFloat32;
  const double tolerance = device() == kCpu ? 1e-14 : 1e-6;
  const Tensor x = random_there({6, 4}, dtype, 1), target = random_there({6, 4}, dtype, 2);
  const Tensor classes = from<std::int64_t>({0, 3, 2, 1, 1, 0}, {6});
  double entropy = 0, squares = 0;
  for (const auto& [begin, end] : {std::pair{0, 4}, std::pair{4, 6}, std::pair{6, 6}}) {
    entropy += cross_entropy(x.rows(begin, end), classes.rows(begin, end), {.divisor = 6}).item();
    squares += mse(x.rows(begin, end), target.rows(begin, end), {.divisor = 6}).item();
  }
  EXPECT_NEAR(entropy, cross_entropy(x, classes).item(), tolerance);
  EXPECT_NEAR(squares, mse(x, target).item(), tolerance);
}

TEST(Losses, OfNothingAreZero) {
  EXPECT_EQ(cross_entropy(zeros({0, 4}, DType::kFloat32), zeros({0}, DType::kInt64)).item(), 0);
  EXPECT_EQ(mse(zeros({0, 4}, DType::kFloat32), zeros({0, 4}, DType::kFloat32)).item(), 0);
  EXPECT_EQ(mean(zeros({0, 4}, DType::kFloat32)).item(), 0);
  EXPECT_EQ(sum(zeros({0, 4}, DType::kFloat32)).item(), 0);
}

TEST(Gradients, AreOnlyComputedWhereTheyAreNeeded) {
  const Tensor x = random_there({2, 3}, DType::kFloat32, 1), w = random_there({4, 3}, DType::kFloat32, 2);
  w.set_requires_grad(true);
  sum(linear(x, w, random_there({4}, DType::kFloat32, 3))).backward();
  EXPECT_TRUE(w.grad().defined());
  EXPECT_FALSE(x.grad().defined());
}

TEST(Gradients, AreTheSameBitsEveryTime) {
  std::vector<std::vector<double>> runs;
  for (int run = 0; run < 2; ++run) {
    const Tensor x = random_there({16, 8, 8, 3}, DType::kFloat16, 1),
                 w = random_there({8, 3, 3, 3}, DType::kFloat16, 2);
    w.set_requires_grad(true);
    kernels::ConvGeometry geometry;
    const Tensor y = conv(x, w, {}, geometry);
    sum(global_average_pool(gelu(add(y, relu(y))))).backward();
    runs.push_back(values_of(w.grad()));
  }
  EXPECT_EQ(runs[0], runs[1]);
}

TEST(Errors, NameTheOperationAndTheShapes) {
  const auto floats = [](const Shape& shape) { return Tensor::zeros(shape, DType::kFloat32); };
  EXPECT_THAT(
      [&] {
        linear(floats({2, 3}), floats({4, 5}), {});
      },
      ThrowsMessage<ShapeError>(::testing::AllOf(HasSubstr("[2, 3]"), HasSubstr("[4, 5]"))));
  EXPECT_THAT(
      [&] {
        linear(floats({2, 3}), floats({4, 3}), floats({5}));
      },
      ThrowsMessage<ShapeError>(HasSubstr("[5]")));
  EXPECT_THAT([&] { matmul(floats({2, 3}), floats({4, 5})); }, ThrowsMessage<ShapeError>(HasSubstr("[4, 5]")));
  EXPECT_THAT([&] { matmul(floats({3}), floats({3})); }, ThrowsMessage<ShapeError>(HasSubstr("rank 2")));
  EXPECT_THAT([&] { add(floats({2, 3}), floats({2})); }, ThrowsMessage<ShapeError>(HasSubstr("[2]")));
  EXPECT_THAT([&] { mul(floats({4}), floats({2, 3})); }, ThrowsMessage<ShapeError>(HasSubstr("[2, 3]")));
  EXPECT_THAT(
      [&] {
        conv(floats({2, 8, 8, 3}), floats({4, 3, 3, 2}), {}, {});
      },
      ThrowsMessage<ShapeError>(HasSubstr("conv")));
  EXPECT_THAT([&] { conv(floats({2, 2, 2, 3}), floats({4, 3, 3, 3}), {}, {}); }, ::testing::Throws<ShapeError>());
  EXPECT_THAT(
      [&] {
        conv_transpose(floats({2, 8, 8, 3}), floats({4, 3, 3, 3}), {}, {});
      },
      ThrowsMessage<ShapeError>(::testing::AllOf(HasSubstr("conv_transpose"), HasSubstr("[4, 3, 3, 3]"))));
  EXPECT_THAT(
      [&] {
        conv_transpose(floats({2, 8, 8, 3}), floats({3, 3, 3, 4}), floats({5}), {});
      },
      ThrowsMessage<ShapeError>(HasSubstr("[5]")));
  EXPECT_THAT(
      [&] {
        conv_transpose(floats({2, 8, 8, 3}), floats({3, 3, 3, 4}), {}, {}, {1});
      },
      ThrowsMessage<ShapeError>(HasSubstr("output_padding")));
  EXPECT_THAT([&] { reshape(floats({2, 3}), {4}); }, ThrowsMessage<ShapeError>(HasSubstr("cannot reshape")));
  EXPECT_THAT(
      [&] {
        cross_entropy(floats({2, 3}), Tensor::zeros({3}, DType::kInt64));
      },
      ThrowsMessage<ShapeError>(HasSubstr("needs 2 targets")));
  EXPECT_THAT(
      [&] {
        cross_entropy(floats({2, 3}), Tensor::from<std::int64_t>({0, 3}, {2}));
      },
      ThrowsMessage<UsageError>(HasSubstr("the target of row 1 is 3")));
  EXPECT_THAT([&] { mse(floats({2, 3}), floats({3, 2})); }, ThrowsMessage<ShapeError>(HasSubstr("mse")));
  EXPECT_THAT(
      [&] {
        linear(floats({2, 3}), Tensor::zeros({4, 3}, DType::kFloat16), {});
      },
      ThrowsMessage<ShapeError>(HasSubstr("float16")));
}

}  // namespace
}  // namespace lockstep::ops
