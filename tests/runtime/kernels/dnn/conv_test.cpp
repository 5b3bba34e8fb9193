// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "tests/runtime/kernels/kernel_fixture.h"

namespace lockstep::kernels {
namespace {

using testing::bounds_for;
using testing::CpuTypes;
using testing::expect_close;
using testing::KernelTest;
using testing::OnName;
using testing::random_tensor;

struct Case {
  const char* name;
  ConvGeometry geometry;
  Shape x;
  Shape weight;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> table{
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
      {"1d", {.spatial_rank = 1, .stride = {2}, .padding = {2}}, {2, 21, 8}, {6, 5, 8}},
      {"1d one channel", {.spatial_rank = 1, .dilation = {4}}, {2, 21, 1}, {16, 3, 1}},
      {"3d", {.spatial_rank = 3, .padding = {1, 1, 1}}, {1, 5, 6, 4, 16}, {8, 3, 3, 3, 16}},
      {"3d one channel, stride 2", {.spatial_rank = 3, .stride = {2, 2, 2}}, {2, 6, 5, 7, 1}, {8, 3, 2, 3, 1}},
      {"3d groups", {.spatial_rank = 3, .padding = {1, 0, 1}, .groups = 2}, {1, 4, 4, 4, 4}, {6, 3, 2, 3, 2}},
      {"no images", {.padding = {1, 1}}, {0, 8, 8, 4}, {8, 3, 3, 4}},
  };
  return table;
}

Shape output_shape(const Case& c) { return conv_output_shape(c.x, c.weight, c.geometry); }
/// Products in an element of y; of dx at most as many as of y with the channels swapped.
std::int64_t forward_terms(const Case& c) { return c.weight.numel() / c.weight.front(); }
std::int64_t data_terms(const Case& c) { return c.weight.numel() / c.weight.back(); }
std::int64_t weight_terms(const Case& c) { return output_shape(c).rows(); }

template <class T>
using ConvTest = KernelTest<T>;
TYPED_TEST_SUITE(ConvTest, CpuTypes, OnName);

TYPED_TEST(ConvTest, ForwardMatchesReference) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const Tensor x = this->random(c.x, 1);
    const Tensor weight = this->random(c.weight, 2);
    for (const Tensor& bias : {Tensor(), this->random({c.weight.front()}, 3)}) {
      this->expect_matches_reference(
          [&](Backend& tested) {
            const Tensor y = this->empty(output_shape(c));
            tested.conv_forward(c.geometry, x, weight, bias, y);
            return std::vector{y};
          },
          bounds_for(this->kDType, forward_terms(c) + 1));
    }
  }
}

TYPED_TEST(ConvTest, GradientOfXMatchesReference) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const Tensor x = this->random(c.x, 1);
    const Tensor weight = this->random(c.weight, 2);
    const Tensor dy = this->random(output_shape(c), 3);
    this->expect_matches_reference(
        [&](Backend& tested) {
          const Tensor dx = this->empty(c.x);
          tested.conv_backward(c.geometry, x, weight, dy, dx, {}, {}, false);
          return std::vector{dx};
        },
        bounds_for(this->kDType, data_terms(c)));
  }
}

TYPED_TEST(ConvTest, GradientsOfParametersMatchReferenceInEveryDtype) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const Tensor x = this->random(c.x, 1);
    const Tensor weight = this->random(c.weight, 2);
    const Tensor dy = this->random(output_shape(c), 3);
    for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
      for (const bool accumulate : {false, true}) {
        SCOPED_TRACE(std::string(name_of(dtype)) + (accumulate ? ", accumulated" : ""));
        this->expect_matches_reference(
            [&](Backend& tested) {
              const Tensor dweight = random_tensor(c.weight, dtype, 4);
              const Tensor dbias = random_tensor({c.weight.front()}, dtype, 5);
              tested.conv_backward(c.geometry, x, weight, dy, {}, dweight, dbias, accumulate);
              return std::vector{dweight, dbias};
            },
            bounds_for(dtype, weight_terms(c) + 1));
      }
    }
  }
}

TYPED_TEST(ConvTest, AllGradientsAtOnceAreThoseOfSingleCalls) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const Tensor x = this->random(c.x, 1);
    const Tensor weight = this->random(c.weight, 2);
    const Tensor dy = this->random(output_shape(c), 3);
    this->expect_matches_reference(
        [&](Backend& tested) {
          const Tensor dx = this->empty(c.x);
          const Tensor dweight = this->empty(c.weight);
          const Tensor dbias = this->empty({c.weight.front()});
          tested.conv_backward(c.geometry, x, weight, dy, dx, dweight, dbias, false);
          return std::vector{dx, dweight, dbias};
        },
        bounds_for(this->kDType, std::max(data_terms(c), weight_terms(c))));
  }
}

TYPED_TEST(ConvTest, TwoCallsGiveTheSameBits) {
  const Case& c = cases()[1];
  const Tensor x = this->random(c.x, 1);
  const Tensor weight = this->random(c.weight, 2);
  const Tensor dy = this->random(output_shape(c), 3);
  const auto run = [&] {
    const std::vector gradients{this->empty(c.x), this->empty(c.weight)};
    backend(kCpu).conv_backward(c.geometry, x, weight, dy, gradients[0], gradients[1], {}, false);
    return gradients;
  };
  const auto first = run();
  const auto second = run();
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(std::memcmp(first[i].data(), second[i].data(), first[i].bytes()), 0);
  }
}

TEST(ConvTest, ShapesThatDoNotFitAreRefused) {
  const Tensor x = Tensor::zeros({1, 4, 4, 3}, DType::kFloat32);
  const Tensor weight = Tensor::zeros({8, 3, 3, 2}, DType::kFloat32);
  const Tensor y = Tensor::zeros({1, 2, 2, 8}, DType::kFloat32);
  EXPECT_THROW(backend(kCpu).conv_forward({}, x, weight, {}, y), ShapeError);
}

}  // namespace
}  // namespace lockstep::kernels
