// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/convolution.h"

#include <cmath>
#include <limits>

#include "runtime/kernels/cpu/conv_plan.h"
#include "tests/runtime/kernels/dnn/conv_case.h"
#include "tests/runtime/kernels/kernel_fixture.h"

namespace lockstep::kernels {
namespace {

using testing::Bounds;
using testing::bytes_of;
using testing::ConvCase;
using testing::epsilon_of;
using testing::KernelTest;
using testing::kProductTypes;
using testing::name_of_on;
using testing::random_tensor;
using testing::tensor_of;
using testing::values_of;

const std::vector<ConvCase>& conv_cases() {
  static const std::vector<ConvCase> table{
      {"one channel", {.padding = {1, 1}}, {3, 8, 8, 1}, {32, 3, 3, 1}},
      {"stride 2", {.stride = {2, 2}, .padding = {1, 1}}, {3, 8, 8, 32}, {64, 3, 3, 32}},
      {"three channels", {.padding = {1, 1}}, {2, 10, 9, 3}, {16, 3, 3, 3}},
      {"1x1 stride 2", {.stride = {2, 2}}, {2, 6, 7, 16}, {8, 1, 1, 16}},
      {"odd channels", {.padding = {1, 1}}, {2, 5, 7, 5}, {7, 3, 3, 5}},
      {"channels past a block", {.padding = {1, 1}}, {2, 4, 4, 33}, {17, 3, 3, 33}},
      {"dilation", {.padding = {2, 2}, .dilation = {2, 2}}, {2, 9, 9, 8}, {8, 3, 3, 8}},
      {"differing dimensions", {.stride = {1, 2}, .padding = {0, 2}, .dilation = {3, 1}}, {2, 9, 8, 4}, {6, 2, 5, 4}},
      {"kernel as large as the image", {}, {2, 4, 5, 6}, {3, 4, 5, 6}},
      {"odd groups", {.padding = {1, 1}, .groups = 2}, {2, 6, 6, 10}, {12, 3, 3, 5}},
      {"groups of 16", {.padding = {1, 1}, .groups = 4}, {2, 5, 5, 64}, {64, 3, 3, 16}},
      {"depthwise", {.padding = {1, 1}, .groups = 16}, {2, 7, 7, 16}, {16, 3, 3, 1}},
      {"depthwise with 2 outputs a channel", {.stride = {2, 2}, .groups = 6}, {2, 7, 7, 6}, {12, 3, 3, 1}},
      {"long rows", {.padding = {1, 1}}, {1, 3, 24, 32}, {32, 3, 3, 32}},
      {"one image", {.padding = {1, 1}}, {1, 4, 4, 16}, {16, 3, 3, 16}},
      {"more images than fit in a chunk", {}, {5, 32, 32, 64}, {4, 1, 1, 64}},
      {"tiles of 4x4", {.padding = {1, 1}}, {4, 15, 14, 32}, {48, 3, 3, 32}},
      {"small and deep", {.padding = {1, 1}}, {4, 2, 3, 512}, {16, 3, 3, 512}},
      {"small and many outputs", {.padding = {1, 1}}, {4, 2, 3, 16}, {512, 3, 3, 16}},
      {"1d", {.spatial_rank = 1, .stride = {2}, .padding = {2}}, {2, 21, 8}, {6, 5, 8}},
      {"1d one channel", {.spatial_rank = 1, .dilation = {4}}, {2, 21, 1}, {16, 3, 1}},
      {"3d", {.spatial_rank = 3, .padding = {1, 1, 1}}, {1, 5, 6, 4, 16}, {8, 3, 3, 3, 16}},
      {"3d one channel, stride 2", {.spatial_rank = 3, .stride = {2, 2, 2}}, {2, 6, 5, 7, 1}, {8, 3, 2, 3, 1}},
      {"3d groups", {.spatial_rank = 3, .padding = {1, 0, 1}, .groups = 2}, {1, 4, 4, 4, 4}, {6, 3, 2, 3, 2}},
      {"no images", {.padding = {1, 1}}, {0, 8, 8, 4}, {8, 3, 3, 4}},
  };
  return table;
}

Shape output_shape(const ConvCase& c) { return conv_output_shape(c.x, c.weight, c.geometry); }
/// Products in an element of y; of dx at most as many as of y with the channels swapped.
std::int64_t forward_terms(const ConvCase& c) { return c.weight.numel() / c.weight.front(); }
std::int64_t data_terms(const ConvCase& c) { return c.weight.numel() / c.weight.back(); }
std::int64_t weight_terms(const ConvCase& c) { return output_shape(c).rows(); }

using ConvTest = KernelTest<Convolution>;
INSTANTIATE_TEST_SUITE_P(On, ConvTest, kProductTypes, name_of_on);

TEST_P(ConvTest, ForwardMatchesReference) {
  for (const ConvCase& c : conv_cases()) {
    SCOPED_TRACE(c.name);
    const Tensor x = random(c.x, 1);
    const Tensor weight = random(c.weight, 2);
    for (const Tensor& bias : {Tensor(), random({c.weight.front()}, 3)}) {
      expect_matches_reference(
          [&](const Place& on) {
            const Tensor y = on.empty(output_shape(c));
            on->conv_forward(c.geometry, on(x), on(weight), on(bias), y);
            return std::vector{y};
          },
          bounds(forward_terms(c) + 1));
    }
  }
}

TEST_P(ConvTest, GradientOfXMatchesReference) {
  for (const ConvCase& c : conv_cases()) {
    SCOPED_TRACE(c.name);
    const Tensor x = random(c.x, 1);
    const Tensor weight = random(c.weight, 2);
    const Tensor dy = random(output_shape(c), 3);
    expect_matches_reference(
        [&](const Place& on) {
          const Tensor dx = on.empty(c.x);
          on->conv_backward(c.geometry, on(x), on(weight), on(dy), dx, {}, {}, false);
          return std::vector{dx};
        },
        bounds(data_terms(c)));
  }
}

TEST_P(ConvTest, GradientsOfParametersMatchReferenceInEveryDtype) {
  int number = 0;
  for (const ConvCase& c : conv_cases()) {
    SCOPED_TRACE(c.name);
    int way = number++;
    const Tensor x = random(c.x, 1);
    const Tensor weight = random(c.weight, 2);
    const Tensor dy = random(output_shape(c), 3);
    for (const DType stored : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
      Bounds allowed = bounds(weight_terms(c) + 1, 1, stored);
      if (device() != kCpu && is_reduced(dtype())) {
        // cuDNN rounds the sum to the operands' dtype; it is added and cast behind.
        allowed.relative = std::max(allowed.relative, 2 * epsilon_of(dtype()));
        allowed.absolute += 2 * epsilon_of(dtype()) * std::sqrt(static_cast<double>(weight_terms(c)));
      }
      for (const bool accumulate : {false, true}) {
        // Behind a GPU's kernel, which all six ways share, each case takes another: on the host it takes long.
        if (device() != kCpu && way++ % 6 != 0) continue;
        SCOPED_TRACE(std::string(name_of(stored)) + (accumulate ? ", accumulated" : ""));
        expect_matches_reference(
            [&](const Place& on) {
              const Tensor dweight = on.copy(random_tensor(c.weight, stored, 4));
              const Tensor dbias = on.copy(random_tensor({c.weight.front()}, stored, 5));
              on->conv_backward(c.geometry, on(x), on(weight), on(dy), {}, dweight, dbias, accumulate);
              return std::vector{dweight, dbias};
            },
            allowed);
      }
    }
  }
}

TEST_P(ConvTest, AllGradientsAtOnceAreThoseOfSingleCalls) {
  for (const ConvCase& c : conv_cases()) {
    SCOPED_TRACE(c.name);
    const Tensor x = random(c.x, 1);
    const Tensor weight = random(c.weight, 2);
    const Tensor dy = random(output_shape(c), 3);
    expect_matches_reference(
        [&](const Place& on) {
          const Tensor dx = on.empty(c.x);
          const Tensor dweight = on.empty(c.weight);
          const Tensor dbias = on.empty({c.weight.front()});
          on->conv_backward(c.geometry, on(x), on(weight), on(dy), dx, dweight, dbias, false);
          return std::vector{dx, dweight, dbias};
        },
        bounds(std::max(data_terms(c), weight_terms(c))));
  }
}

TEST_P(ConvTest, TwoCallsGiveTheSameBits) {
  const ConvCase& c = conv_cases()[1];
  const Tensor x = random(c.x, 1);
  const Tensor weight = random(c.weight, 2);
  const Tensor dy = random(output_shape(c), 3);
  const auto run = [&, on = tested()] {
    const Tensor y = on.empty(output_shape(c)), dx = on.empty(c.x), dweight = on.empty(c.weight);
    on->conv_forward(c.geometry, on(x), on(weight), {}, y);
    on->conv_backward(c.geometry, on(x), on(weight), on(dy), dx, dweight, {}, false);
    return std::vector{bytes_of(y), bytes_of(dx), bytes_of(dweight)};
  };
  EXPECT_TRUE(run() == run());
}

TEST_P(ConvTest, WhatIsNotFiniteReachesEveryOutputThatReadsIt) {
  for (const double value : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    const ConvCase c{"", {.padding = {1, 1}}, {4, 15, 14, 32}, {48, 3, 3, 32}};
    std::vector<double> values = values_of(random(c.x, 1));
    values[((2 * 15 + 7) * 14 + 6) * 32 + 5] = value;
    const Tensor x = tensor_of(values, c.x, dtype());
    const auto on = tested();
    const Tensor y = on.empty(output_shape(c));
    on->conv_forward(c.geometry, on(x), on(random(c.weight, 2)), {}, y);
    const std::vector<double> found = values_of(y);
    for (std::size_t row = 6; row <= 8; ++row) {
      for (std::size_t column = 5; column <= 7; ++column) {
        for (std::size_t channel = 0; channel < 48; ++channel) {
          EXPECT_FALSE(std::isfinite(found[((2 * 15 + row) * 14 + column) * 48 + channel]));
        }
      }
    }
    EXPECT_TRUE(std::isfinite(found[0])) << "another image";
  }
}

TEST(ConvTest, ShapesDecideTheAlgorithm) {
  using cpu::ConvAlgorithm;
  using cpu::ConvPass;
  const auto chosen = [](const ConvGeometry& geometry, const Shape& x, const Shape& weight,
                         ConvPass pass = ConvPass::kForward, DType dtype = DType::kFloat32) {
    return cpu::conv_algorithm(pass, geometry, x, weight, conv_output_shape(x, weight, geometry), dtype);
  };
  const ConvGeometry same{.padding = {1, 1}};
  const ConvGeometry halving{.stride = {1, 2}, .padding = {1, 1}};
  const ConvGeometry grouped{.padding = {1, 1}, .groups = 2};
  EXPECT_EQ(chosen(same, {4, 15, 14, 32}, {48, 3, 3, 32}), ConvAlgorithm::kWinograd);
  EXPECT_EQ(chosen(same, {4, 15, 14, 32}, {48, 3, 3, 32}, ConvPass::kForward, DType::kBFloat16),
            ConvAlgorithm::kDirect);
  EXPECT_EQ(chosen(same, {3, 15, 14, 32}, {48, 3, 3, 32}), ConvAlgorithm::kDirect) << "few tiles";
  EXPECT_EQ(chosen(same, {4, 15, 14, 16}, {48, 3, 3, 16}), ConvAlgorithm::kDirect) << "few channels";
  EXPECT_EQ(chosen(halving, {8, 15, 14, 32}, {48, 3, 3, 32}), ConvAlgorithm::kDirect);
  EXPECT_EQ(chosen(grouped, {8, 15, 14, 64}, {64, 3, 3, 32}), ConvAlgorithm::kDirect);
  EXPECT_EQ(chosen({.padding = {2, 2}}, {8, 15, 14, 32}, {64, 5, 5, 32}), ConvAlgorithm::kDirect);
  EXPECT_EQ(chosen(same, {4, 4, 4, 512}, {64, 3, 3, 512}), ConvAlgorithm::kDirectBlocked);
  EXPECT_EQ(chosen(same, {4, 4, 4, 512}, {64, 3, 3, 512}, ConvPass::kData), ConvAlgorithm::kDirect);
  EXPECT_EQ(chosen(same, {4, 4, 4, 512}, {64, 3, 3, 512}, ConvPass::kWeights), ConvAlgorithm::kDirect);
  EXPECT_EQ(chosen(same, {4, 4, 4, 64}, {512, 3, 3, 64}, ConvPass::kData), ConvAlgorithm::kDirectBlocked);
}

TEST(ConvTest, ShapesThatDoNotFitAreRefused) {
  const Tensor x = Tensor::zeros({1, 4, 4, 3}, DType::kFloat32);
  const Tensor weight = Tensor::zeros({8, 3, 3, 2}, DType::kFloat32);
  const Tensor y = Tensor::zeros({1, 2, 2, 8}, DType::kFloat32);
  EXPECT_THROW(Convolution::on(kCpu).conv_forward({}, x, weight, {}, y), ShapeError);
}

}  // namespace
}  // namespace lockstep::kernels
