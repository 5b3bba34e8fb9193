// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/batch_norm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "runtime/base/error.h"
#include "runtime/kernels/elementwise.h"
#include "runtime/kernels/reductions.h"
#include "tests/runtime/kernels/numeric_gradient.h"
#include "tests/runtime/kernels/tables.h"
#include "tests/runtime/kernels/tensors.h"

namespace lockstep::kernels {
namespace {

using lockstep::testing::numeric_gradient;
using testing::Bounds;
using testing::expect_close;
using testing::random_tensor;
using testing::reference_of;
using testing::values_of;

constexpr double kEpsilon = 1e-5;

Tensor empty_doubles(const Shape& shape) { return Tensor::empty(shape, DType::kFloat64); }

TEST(ReferenceBatchNorm, StatisticsAreMeanAndSumOfSquaredDeviations) {
  const Tensor x = Tensor::from<double>({1, 10, 2, 10, 6, 10}, {3, 1, 2});
  const Tensor mean = empty_doubles({2});
  const Tensor m2 = empty_doubles({2});
  reference_of<BatchNormalization>().batch_norm_statistics(x, mean, m2);
  expect_close(mean, {3, 10}, {.relative = 1e-15});
  expect_close(m2, {14, 0}, {.relative = 1e-14, .absolute = 1e-28});
  reference_of<BatchNormalization>().batch_norm_statistics(empty_doubles({0, 2}), mean, m2);
  EXPECT_EQ(values_of(mean), (std::vector<double>{0, 0}));
  EXPECT_EQ(values_of(m2), (std::vector<double>{0, 0}));
}

TEST(ReferenceBatchNorm, FinalizeCombinesTheSharesOfRanks) {
  const Tensor x = random_tensor({7, 3}, DType::kFloat64, 1, -2, 5);
  // A rank without rows takes part: its zeros count for nothing.
  const std::vector<std::int64_t> cuts = {0, 2, 2, 7};
  const Tensor packed = Tensor::zeros({3, 7}, DType::kFloat64);
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    const Tensor share = packed.rows(rank, rank + 1).reshaped({7});
    reference_of<BatchNormalization>().batch_norm_statistics(x.rows(cuts[r], cuts[r + 1]), share.rows(0, 3),
                                                             share.rows(3, 6));
    share.mutable_as<double>()[6] = static_cast<double>(cuts[r + 1] - cuts[r]);
  }
  const Tensor running = random_tensor({2, 3}, DType::kFloat64, 2, 0, 1);
  const Tensor mean = empty_doubles({3}), inv_std = empty_doubles({3}), count = empty_doubles({}),
               next = empty_doubles({2, 3});
  reference_of<BatchNormalization>().batch_norm_finalize(packed, kEpsilon, 0.1, running, mean, inv_std, count, next);

  const Tensor whole_mean = empty_doubles({3}), whole_m2 = empty_doubles({3});
  reference_of<BatchNormalization>().batch_norm_statistics(x, whole_mean, whole_m2);
  const Bounds bounds{.relative = 1e-12};
  EXPECT_EQ(count.item(), 7);
  expect_close(mean, whole_mean, bounds);
  for (std::int64_t c = 0; c < 3; ++c) {
    const double m2 = whole_m2.item(c);
    EXPECT_NEAR(inv_std.item(c), 1 / std::sqrt(m2 / 7 + kEpsilon), 1e-12);
    EXPECT_NEAR(next.item(c), 0.9 * running.item(c) + 0.1 * whole_mean.item(c), 1e-12);
    EXPECT_NEAR(next.item(3 + c), 0.9 * running.item(3 + c) + 0.1 * m2 / 6, 1e-12);
  }
}

TEST(ReferenceBatchNorm, WithoutAnyRowTheRunningStatisticsStay) {
  const Tensor running = random_tensor({2, 1}, DType::kFloat64, 2);
  const Tensor mean = empty_doubles({1}), inv_std = empty_doubles({1}), count = empty_doubles({}),
               next = empty_doubles({2, 1});
  reference_of<BatchNormalization>().batch_norm_finalize(Tensor::zeros({2, 3}, DType::kFloat64), 0.25, 0.1, running,
                                                         mean, inv_std, count, next);
  EXPECT_EQ(values_of(next), values_of(running));
  EXPECT_EQ(count.item(), 0);
  EXPECT_EQ(inv_std.item(), 2);
}

TEST(ReferenceBatchNorm, ApplyNormalisesAddsAndClips) {
  const Tensor x = Tensor::from<double>({1, 2, 3, 4}, {2, 2});
  const Tensor mean = Tensor::from<double>({2, 3}, {2});
  const Tensor inv_std = Tensor::from<double>({1, 0.5}, {2});
  const Tensor gamma = Tensor::from<double>({10, 20}, {2});
  const Tensor beta = Tensor::from<double>({1, 2}, {2});
  const Tensor y = empty_doubles({2, 2});
  reference_of<BatchNormalization>().batch_norm_apply(x, mean, inv_std, gamma, beta, {}, false, y);
  EXPECT_EQ(values_of(y), (std::vector<double>{-9, -8, 11, 12}));
  reference_of<BatchNormalization>().batch_norm_apply(x, mean, inv_std, gamma, beta, {}, true, y);
  EXPECT_EQ(values_of(y), (std::vector<double>{0, 0, 11, 12}));
  const Tensor residual = Tensor::from<double>({10, 1, -20, 3}, {2, 2});
  reference_of<BatchNormalization>().batch_norm_apply(x, mean, inv_std, gamma, beta, residual, true, residual);
  EXPECT_EQ(values_of(residual), (std::vector<double>{1, 0, 0, 15}));
}

/// Batch norm over the whole batch, out of the backend's pieces.
struct BatchNorm {
  bool relu = false;
  Tensor x, gamma, beta, residual;
  Tensor mean, inv_std, count, y;

  BatchNorm(const Shape& shape, bool with_relu, bool with_residual)
      : relu(with_relu),
        x(random_tensor(shape, DType::kFloat64, 1, -2, 3)),
        gamma(random_tensor({shape.back()}, DType::kFloat64, 2, 0.5, 1.5)),
        beta(random_tensor({shape.back()}, DType::kFloat64, 3)),
        residual(with_residual ? random_tensor(shape, DType::kFloat64, 4) : Tensor()),
        mean(empty_doubles({shape.back()})),
        inv_std(empty_doubles({shape.back()})),
        count(empty_doubles({})),
        y(empty_doubles(shape)) {}

  void forward() {
    const std::int64_t channels = x.shape().back();
    const Tensor packed = empty_doubles({2 * channels + 1});
    packed.mutable_as<double>().back() = static_cast<double>(x.shape().rows());
    reference_of<BatchNormalization>().batch_norm_statistics(x, packed.rows(0, channels),
                                                             packed.rows(channels, 2 * channels));
    reference_of<BatchNormalization>().batch_norm_finalize(packed.reshaped({1, 2 * channels + 1}), kEpsilon, 0.1, {},
                                                           mean, inv_std, count, {});
    reference_of<BatchNormalization>().batch_norm_apply(x, mean, inv_std, gamma, beta, residual, relu, y);
  }
};

class ReferenceBatchNormGradient : public ::testing::TestWithParam<std::tuple<bool, bool>> {};

TEST_P(ReferenceBatchNormGradient, IsTheNumericOne) {
  const auto [relu, with_residual] = GetParam();
  const Shape shape{3, 2, 2, 4};
  BatchNorm norm(shape, relu, with_residual);
  const Tensor dy = random_tensor(shape, DType::kFloat64, 5);
  const Tensor product = empty_doubles(shape);
  const Tensor total = empty_doubles({});
  const auto loss = [&] {
    norm.forward();
    reference_of<Elementwise>().multiply(norm.y, dy, product);
    reference_of<Reductions>().sum(product, 1, total);
    return total.item();
  };
  const Bounds bounds{.absolute = 1e-8};
  const std::vector<double> expected_dx = numeric_gradient(loss, norm.x);
  const std::vector<double> expected_dgamma = numeric_gradient(loss, norm.gamma);
  const std::vector<double> expected_dbeta = numeric_gradient(loss, norm.beta);
  const std::vector<double> expected_dresidual =
      with_residual ? numeric_gradient(loss, norm.residual) : std::vector<double>();

  norm.forward();
  const Tensor sum_dy = empty_doubles({4}), sum_dy_xmu = empty_doubles({4}), dgamma = empty_doubles({4}),
               dbeta = empty_doubles({4});
  const BatchNormMask mask{.y = relu ? norm.y : Tensor()};
  const Tensor dresidual = with_residual ? dy : Tensor();
  reference_of<BatchNormalization>().batch_norm_backward_reduce(
      norm.x, norm.mean, {.dy = dy, .masked = dresidual}, mask, sum_dy, sum_dy_xmu,
      {.inv_std = norm.inv_std, .dgamma = dgamma, .dbeta = dbeta});
  expect_close(sum_dy, expected_dbeta, bounds);
  expect_close(dbeta, expected_dbeta, bounds);
  expect_close(dgamma, expected_dgamma, bounds);

  const Tensor dx = empty_doubles(shape);
  reference_of<BatchNormalization>().batch_norm_backward_apply(norm.x, norm.mean, norm.inv_std, norm.gamma, dy, mask,
                                                               sum_dy, sum_dy_xmu, norm.count, dx);
  expect_close(dx, expected_dx, bounds);
  if (with_residual) expect_close(dresidual, expected_dresidual, bounds);
}

INSTANTIATE_TEST_SUITE_P(All, ReferenceBatchNormGradient, ::testing::Combine(::testing::Bool(), ::testing::Bool()),
                         [](const auto& case_info) {
                           return std::string(std::get<0>(case_info.param) ? "relu" : "identity") +
                                  (std::get<1>(case_info.param) ? "_residual" : "");
                         });

TEST(ReferenceBatchNorm, TwoRanksSumsGiveTheGradientOfTheWholeBatch) {
  const Shape shape{6, 4};
  BatchNorm norm(shape, true, false);
  norm.forward();
  const Tensor dy = random_tensor(shape, DType::kFloat64, 5);
  const auto reduce = [&](std::int64_t begin, std::int64_t end, const Tensor& sums, const Tensor& products) {
    reference_of<BatchNormalization>().batch_norm_backward_reduce(
        norm.x.rows(begin, end), norm.mean, {dy.rows(begin, end)}, {norm.y.rows(begin, end)}, sums, products, {});
  };
  const auto apply = [&](std::int64_t begin, std::int64_t end, const Tensor& sums, const Tensor& products,
                         const Tensor& dx) {
    reference_of<BatchNormalization>().batch_norm_backward_apply(
        norm.x.rows(begin, end), norm.mean, norm.inv_std, norm.gamma, dy.rows(begin, end), {norm.y.rows(begin, end)},
        sums, products, norm.count, dx.rows(begin, end));
  };
  const Tensor sums = empty_doubles({4}), products = empty_doubles({4}), other_sums = empty_doubles({4}),
               other_products = empty_doubles({4});
  const Tensor expected = empty_doubles(shape);
  const Tensor found = empty_doubles(shape);
  reduce(0, 6, sums, products);
  apply(0, 6, sums, products, expected);
  reduce(0, 2, sums, products);
  reduce(2, 6, other_sums, other_products);
  reference_of<Elementwise>().add(sums, other_sums, sums);
  reference_of<Elementwise>().add(products, other_products, products);
  apply(0, 2, sums, products, found);
  apply(2, 6, sums, products, found);
  expect_close(found, expected, {.relative = 1e-12, .absolute = 1e-14});
}

TEST(ReferenceBatchNorm, WithConstantStatisticsTheGradientIsAScaling) {
  BatchNorm norm({2, 3}, false, false);
  norm.forward();
  const Tensor dy = random_tensor({2, 3}, DType::kFloat64, 5);
  const Tensor dx = empty_doubles({2, 3});
  reference_of<BatchNormalization>().batch_norm_backward_apply(norm.x, norm.mean, norm.inv_std, norm.gamma, dy, {}, {},
                                                               {}, {}, dx);
  const Tensor expected = empty_doubles({2, 3});
  reference_of<Elementwise>().multiply(dy, norm.gamma, expected);
  reference_of<Elementwise>().multiply(expected, norm.inv_std, expected);
  expect_close(dx, expected, {.relative = 1e-14});
}

TEST(ReferenceBatchNorm, StatisticsOfSixteenBitsAreFloat32) {
  const Tensor x = random_tensor({5, 2}, DType::kFloat16, 1);
  const Tensor half = Tensor::empty({2}, DType::kFloat16);
  const Tensor single = Tensor::empty({2}, DType::kFloat32);
  EXPECT_NO_THROW(reference_of<BatchNormalization>().batch_norm_statistics(x, single, single));
  EXPECT_THROW(reference_of<BatchNormalization>().batch_norm_statistics(x, half, half), ShapeError);
  EXPECT_THROW(reference_of<BatchNormalization>().batch_norm_statistics(x, Tensor::empty({3}, DType::kFloat32), single),
               ShapeError);
}

TEST(ReferenceBatchNorm, TheMaskOfTheBackwardPassHasTheShapeOfX) {
  BatchNorm norm({2, 3}, true, false);
  norm.forward();
  EXPECT_THROW(reference_of<BatchNormalization>().batch_norm_backward_reduce(
                   norm.x, norm.mean, {norm.y}, {empty_doubles({3})}, empty_doubles({3}), empty_doubles({3}), {}),
               ShapeError);
}

TEST(ReferenceBatchNorm, AGradientOfTwoNeedsMemoryForTheirSum) {
  BatchNorm norm({2, 3}, true, false);
  norm.forward();
  const auto reduce = [&](const BatchNormGradient& gradient) {
    reference_of<BatchNormalization>().batch_norm_backward_reduce(norm.x, norm.mean, gradient, {}, empty_doubles({3}),
                                                                  empty_doubles({3}), {});
  };
  EXPECT_NO_THROW(reduce({norm.y, norm.y, empty_doubles({2, 3})}));
  EXPECT_THROW(reduce({norm.y, norm.y}), ShapeError);
  EXPECT_THROW(reduce({norm.y, empty_doubles({3}), empty_doubles({2, 3})}), ShapeError);
  EXPECT_THROW(reduce({norm.y, {}, empty_doubles({3})}), ShapeError);
}

}  // namespace
}  // namespace lockstep::kernels
