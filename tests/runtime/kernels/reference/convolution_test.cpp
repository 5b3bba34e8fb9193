// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/convolution.h"

#include <gtest/gtest.h>

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

TEST(ReferenceConv, SlidesTheKernelWithoutFlippingIt) {
  const Tensor x = Tensor::from<double>({1, 2, 3, 4}, {1, 4, 1});
  const Tensor weight = Tensor::from<double>({10, 1}, {1, 2, 1});
  const Tensor bias = Tensor::from<double>({100}, {1});
  ConvGeometry geometry{.spatial_rank = 1};
  Tensor y = Tensor::empty({1, 3, 1}, DType::kFloat64);
  reference_of<Convolution>().conv_forward(geometry, x, weight, bias, y);
  EXPECT_EQ(values_of(y), (std::vector<double>{112, 123, 134}));
  geometry.padding = {1, 0, 0};
  geometry.stride = {2, 1, 1};
  reference_of<Convolution>().conv_forward(geometry, x, weight, {}, y);
  EXPECT_EQ(values_of(y), (std::vector<double>{1, 23, 40}));
  geometry = {.spatial_rank = 1, .dilation = {2, 1, 1}};
  y = Tensor::empty({1, 2, 1}, DType::kFloat64);
  reference_of<Convolution>().conv_forward(geometry, x, weight, {}, y);
  EXPECT_EQ(values_of(y), (std::vector<double>{13, 24}));
}

TEST(ReferenceConv, GroupsSeeOnlyTheirChannels) {
  const Tensor x = Tensor::from<double>({1, 2, 3, 4}, {1, 1, 1, 4});
  const Tensor weight = Tensor::from<double>({1, 10, 100, 1000}, {2, 1, 1, 2});
  const Tensor y = Tensor::empty({1, 1, 1, 2}, DType::kFloat64);
  reference_of<Convolution>().conv_forward({.groups = 2}, x, weight, {}, y);
  EXPECT_EQ(values_of(y), (std::vector<double>{21, 4300}));
}

struct ConvCase {
  const char* name;
  Shape x;
  Shape weight;
  ConvGeometry geometry;
};

class ReferenceConvGradient : public ::testing::TestWithParam<ConvCase> {};

TEST_P(ReferenceConvGradient, IsTheNumericOne) {
  const auto& [name, x_shape, weight_shape, geometry] = GetParam();
  const Tensor x = random_tensor(x_shape, DType::kFloat64, 1);
  const Tensor weight = random_tensor(weight_shape, DType::kFloat64, 2);
  const Tensor bias = random_tensor({weight_shape.front()}, DType::kFloat64, 3);
  const Shape y_shape = conv_output_shape(x_shape, weight_shape, geometry);
  const Tensor dy = random_tensor(y_shape, DType::kFloat64, 4);
  const Tensor y = Tensor::empty(y_shape, DType::kFloat64);
  const Tensor total = Tensor::empty({}, DType::kFloat64);
  const auto loss = [&] {
    reference_of<Convolution>().conv_forward(geometry, x, weight, bias, y);
    multiply(y, dy, y);
    reference_of<Reductions>().sum(y, 1, total);
    return total.item();
  };
  const Tensor dx = Tensor::empty(x_shape, DType::kFloat64);
  const Tensor dweight = Tensor::empty(weight_shape, DType::kFloat64);
  const Tensor dbias = Tensor::empty(bias.shape(), DType::kFloat64);
  reference_of<Convolution>().conv_backward(geometry, x, weight, dy, dx, dweight, dbias, false);
  expect_close(dx, numeric_gradient(loss, x), {.absolute = 1e-8});
  expect_close(dweight, numeric_gradient(loss, weight), {.absolute = 1e-8});
  expect_close(dbias, numeric_gradient(loss, bias), {.absolute = 1e-8});

  // Twice the gradient where it is added to.
  std::vector<double> twice = values_of(dweight);
  for (double& value : twice) value *= 2;
  reference_of<Convolution>().conv_backward(geometry, x, weight, dy, {}, dweight, {}, true);
  expect_close(dweight, twice, {.relative = 1e-12, .absolute = 1e-12});
}

INSTANTIATE_TEST_SUITE_P(
    All, ReferenceConvGradient,
    ::testing::Values(
        ConvCase{"one_d", {2, 7, 3}, {4, 3, 3}, {.spatial_rank = 1, .stride = {2, 1, 1}, .padding = {1, 0, 0}}},
        ConvCase{"two_d", {2, 5, 4, 2}, {3, 3, 3, 2}, {.padding = {1, 1, 0}}},
        ConvCase{"two_d_uneven",
                 {1, 6, 5, 2},
                 {2, 2, 3, 2},
                 {.stride = {1, 2, 1}, .padding = {0, 2, 0}, .dilation = {2, 1, 1}}},
        ConvCase{"grouped", {1, 4, 4, 4}, {6, 3, 3, 2}, {.padding = {1, 1, 0}, .groups = 2}},
        ConvCase{"depthwise", {2, 4, 4, 3}, {3, 3, 3, 1}, {.padding = {1, 1, 0}, .groups = 3}},
        ConvCase{"three_d", {1, 3, 4, 3, 2}, {2, 2, 3, 1, 2}, {.spatial_rank = 3, .padding = {1, 1, 0}}}),
    [](const ::testing::TestParamInfo<ConvCase>& case_info) { return std::string(case_info.param.name); });

TEST(ReferenceConv, GradientsMayBeOfAnotherDtype) {
  const Tensor x = random_tensor({1, 4, 4, 2}, DType::kFloat16, 1);
  const Tensor weight = random_tensor({3, 3, 3, 2}, DType::kFloat16, 2);
  const Tensor dy = random_tensor({1, 2, 2, 3}, DType::kFloat16, 3);
  const Tensor exact = Tensor::empty(weight.shape(), DType::kFloat64);
  const Tensor rounded = Tensor::empty(weight.shape(), DType::kFloat32);
  reference_of<Convolution>().conv_backward({}, x, weight, dy, {}, exact, {}, false);
  reference_of<Convolution>().conv_backward({}, x, weight, dy, {}, rounded, {}, false);
  expect_close(rounded, exact, {.relative = 0x1p-24});
}

TEST(ReferenceConv, ABatchWithoutImagesHasZeroGradients) {
  const Tensor x = Tensor::empty({0, 4, 4, 2}, DType::kFloat64);
  const Tensor weight = random_tensor({3, 3, 3, 2}, DType::kFloat64, 2);
  const Tensor y = Tensor::empty({0, 2, 2, 3}, DType::kFloat64);
  reference_of<Convolution>().conv_forward({}, x, weight, {}, y);
  const Tensor dweight = random_tensor(weight.shape(), DType::kFloat64, 3);
  reference_of<Convolution>().conv_backward({}, x, weight, y, Tensor::empty(x.shape(), DType::kFloat64), dweight, {},
                                            false);
  EXPECT_EQ(values_of(dweight), std::vector<double>(54, 0.0));
}

TEST(ReferenceConv, WhatDoesNotFitIsRefused) {
  const auto convolve = [](const ConvGeometry& geometry, const Shape& x, const Shape& weight, const Shape& y) {
    reference_of<Convolution>().conv_forward(geometry, Tensor::zeros(x, DType::kFloat64),
                                             Tensor::zeros(weight, DType::kFloat64), {},
                                             Tensor::zeros(y, DType::kFloat64));
  };
  EXPECT_NO_THROW(convolve({}, {1, 4, 4, 2}, {3, 3, 3, 2}, {1, 2, 2, 3}));
  EXPECT_THROW(convolve({}, {1, 4, 4, 2}, {3, 3, 3, 2}, {1, 3, 2, 3}), ShapeError);
  EXPECT_THROW(convolve({}, {1, 4, 4, 2}, {3, 3, 3, 3}, {1, 2, 2, 3}), ShapeError);
  EXPECT_THROW(convolve({.spatial_rank = 1}, {1, 4, 4, 2}, {3, 3, 3, 2}, {1, 2, 2, 3}), ShapeError);
  EXPECT_THROW(convolve({.groups = 2}, {1, 4, 4, 2}, {3, 3, 3, 1}, {1, 2, 2, 3}), ShapeError);
}

}  // namespace
}  // namespace lockstep::kernels
