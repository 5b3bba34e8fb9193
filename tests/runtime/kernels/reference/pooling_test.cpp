// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/pooling.h"

#include <gtest/gtest.h>

#include <cmath>

#include "runtime/base/error.h"
#include "runtime/kernels/assign.h"
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
using testing::values_of;

TEST(ReferencePool, MaximaComeWithTheirPlace) {
  const PoolGeometry geometry{.window = {2, 2, 1}, .stride = {2, 2, 1}};
  // Two channels; the second one has ties and a NaN.
  const Tensor x = Tensor::from<double>({1, 5, 2, 5, 3, NAN, 4, 9,  //
                                         9, 5, 6, 5, 7, 1, 8, 2},
                                        {1, 2, 4, 2});
  const Tensor y = Tensor::empty({1, 1, 2, 2}, DType::kFloat64);
  const Tensor indices = Tensor::empty(y.shape(), DType::kInt32);
  reference_of<Pooling>().pool_forward(geometry, x, y, indices);
  expect_close(y, {9, 5, 8, NAN}, {});
  EXPECT_EQ(values_of(indices), (std::vector<double>{4, 0, 7, 2}));
}

TEST(ReferencePool, MaximumOfNegativesIgnoresThePadding) {
  const PoolGeometry geometry{.spatial_rank = 1, .window = {3, 1, 1}, .stride = {2, 1, 1}, .padding = {1, 0, 0}};
  const Tensor x = Tensor::from<double>({-4, -3, -2, -INFINITY}, {1, 4, 1});
  const Tensor y = Tensor::empty({1, 2, 1}, DType::kFloat64);
  const Tensor indices = Tensor::empty(y.shape(), DType::kInt32);
  reference_of<Pooling>().pool_forward(geometry, x, y, indices);
  EXPECT_EQ(values_of(y), (std::vector<double>{-3, -2}));
  EXPECT_EQ(values_of(indices), (std::vector<double>{1, 2}));
}

TEST(ReferencePool, AverageCountsThePaddingOrNot) {
  PoolGeometry geometry{
      .kind = PoolKind::kAverage, .spatial_rank = 1, .window = {3, 1, 1}, .stride = {2, 1, 1}, .padding = {1, 0, 0}};
  const Tensor x = Tensor::from<double>({3, 6, 9, 12}, {1, 4, 1});
  const Tensor y = Tensor::empty({1, 2, 1}, DType::kFloat64);
  reference_of<Pooling>().pool_forward(geometry, x, y, {});
  EXPECT_EQ(values_of(y), (std::vector<double>{3, 9}));
  geometry.count_include_pad = false;
  reference_of<Pooling>().pool_forward(geometry, x, y, {});
  EXPECT_EQ(values_of(y), (std::vector<double>{4.5, 9}));
}

struct PoolCase {
  const char* name;
  Shape x;
  PoolGeometry geometry;
};

class ReferencePoolGradient : public ::testing::TestWithParam<PoolCase> {};

TEST_P(ReferencePoolGradient, IsTheNumericOne) {
  const auto& [name, x_shape, geometry] = GetParam();
  const Tensor x = random_tensor(x_shape, DType::kFloat64, 1);
  const Shape y_shape = pool_output_shape(x_shape, geometry);
  const Tensor dy = random_tensor(y_shape, DType::kFloat64, 2);
  const Tensor y = Tensor::empty(y_shape, DType::kFloat64);
  const Tensor total = Tensor::empty({}, DType::kFloat64);
  const Tensor indices = geometry.kind == PoolKind::kMax ? Tensor::empty(y_shape, DType::kInt32) : Tensor();
  const auto loss = [&] {
    reference_of<Pooling>().pool_forward(geometry, x, y, indices);
    multiply(y, dy, y);
    reference_of<Reductions>().sum(y, 1, total);
    return total.item();
  };
  const std::vector<double> expected = numeric_gradient(loss, x);
  const Tensor dx = Tensor::empty(x_shape, DType::kFloat64);
  reference_of<Pooling>().pool_backward(geometry, dy, indices, dx);
  expect_close(dx, expected, {.absolute = 1e-9});
}

INSTANTIATE_TEST_SUITE_P(
    All, ReferencePoolGradient,
    ::testing::Values(
        PoolCase{"max_one_d", {2, 7, 2}, {.spatial_rank = 1, .window = {3, 1, 1}, .stride = {2, 1, 1}}},
        PoolCase{
            "max_two_d_overlapping", {2, 5, 6, 3}, {.window = {3, 3, 1}, .stride = {2, 2, 1}, .padding = {1, 1, 0}}},
        PoolCase{"max_three_d",
                 {1, 4, 3, 4, 2},
                 {.spatial_rank = 3, .window = {2, 3, 2}, .stride = {2, 1, 2}, .padding = {0, 1, 0}}},
        PoolCase{"average",
                 {2, 5, 6, 3},
                 {.kind = PoolKind::kAverage, .window = {3, 2, 1}, .stride = {2, 2, 1}, .padding = {1, 1, 0}}},
        PoolCase{"average_without_padding",
                 {2, 5, 6, 3},
                 {.kind = PoolKind::kAverage,
                  .window = {3, 2, 1},
                  .stride = {2, 2, 1},
                  .padding = {1, 1, 0},
                  .count_include_pad = false}}),
    [](const ::testing::TestParamInfo<PoolCase>& case_info) { return std::string(case_info.param.name); });

TEST(ReferencePool, GlobalAverageIsTheMeanAndItsGradientTheShare) {
  const Tensor x = Tensor::from<double>({1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 6, 60}, {2, 3, 2});
  const Tensor y = Tensor::empty({2, 2}, DType::kFloat64);
  reference_of<Pooling>().global_average_pool(x, y);
  expect_close(y, {2, 20, 5, 50}, {.relative = 1e-15});
  const Tensor dx = Tensor::empty(x.shape(), DType::kFloat64);
  reference_of<Pooling>().global_average_pool_backward(Tensor::from<double>({3, 6, 9, 12}, {2, 2}), dx);
  EXPECT_EQ(values_of(dx), (std::vector<double>{1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 3, 4}));
}

TEST(ReferencePool, WhatDoesNotFitIsRefused) {
  const PoolGeometry geometry{.window = {2, 2, 1}, .stride = {2, 2, 1}};
  const Tensor x = Tensor::zeros({1, 4, 4, 2}, DType::kFloat64);
  const Tensor y = Tensor::zeros({1, 2, 2, 2}, DType::kFloat64);
  const Tensor indices = Tensor::zeros(y.shape(), DType::kInt32);
  EXPECT_NO_THROW(reference_of<Pooling>().pool_forward(geometry, x, y, indices));
  EXPECT_THROW(reference_of<Pooling>().pool_forward(geometry, x, y, {}), ShapeError);
  EXPECT_THROW(reference_of<Pooling>().pool_forward(geometry, x, Tensor::zeros({1, 2, 3, 2}, DType::kFloat64), indices),
               ShapeError);
  EXPECT_THROW(reference_of<Pooling>().pool_backward(geometry, x, indices, y), ShapeError);
  EXPECT_THROW(reference_of<Pooling>().global_average_pool(x, Tensor::zeros({2}, DType::kFloat64)), ShapeError);
}

}  // namespace
}  // namespace lockstep::kernels
