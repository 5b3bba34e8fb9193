// SPDX-License-Identifier: Apache-2.0
// Convolutions as products with gathered patches, on every processor; only on those with tiles are they what is called.
#include "runtime/kernels/cpu/conv_products.h"

#include <algorithm>
#include <array>

#include "runtime/kernels/convolution.h"
#include "runtime/kernels/cpu/conv_phases.h"
#include "runtime/kernels/cpu/conv_plan.h"
#include "runtime/kernels/cpu/isa.h"
#include "tests/runtime/kernels/dnn/conv_case.h"
#include "tests/runtime/kernels/kernel_fixture.h"

namespace lockstep::kernels {
namespace {

using testing::bounds_for;
using testing::ConvCase;
using testing::expect_close;
using testing::random_tensor;
using testing::reference_of;
using testing::tensor_of;
using testing::values_of;

const std::vector<ConvCase>& convolutions() {
  static const std::vector<ConvCase> table{
      {"three channels", {.padding = {1, 1}}, {2, 10, 9, 3}, {16, 3, 3, 3}},
      {"a tap", {}, {3, 5, 4, 20}, {24, 1, 1, 20}},
      {"a tap and padding", {.padding = {1, 0}}, {2, 3, 4, 8}, {8, 1, 1, 8}},
      {"a tap at steps", {.stride = {2, 2}}, {2, 6, 7, 16}, {8, 1, 1, 16}},
      {"steps that end where they began", {.stride = {3, 1}, .padding = {1, 0}}, {2, 2, 4, 8}, {8, 1, 1, 8}},
      {"steps", {.stride = {2, 2}, .padding = {1, 1}}, {3, 8, 8, 32}, {64, 3, 3, 32}},
      {"steps as wide as the window", {.stride = {3, 3}, .padding = {1, 1}}, {2, 9, 9, 8}, {6, 3, 3, 8}},
      {"steps as wide as the window, 1d", {.spatial_rank = 1, .stride = {5}, .padding = {2}}, {2, 10, 8}, {6, 5, 8}},
      {"steps and more dilation",
       {.stride = {2, 2}, .padding = {1, 1}, .dilation = {3, 3}},
       {2, 8, 8, 4},
       {6, 2, 2, 4}},
      {"steps past the window", {.stride = {3, 3}}, {2, 10, 11, 4}, {6, 2, 2, 4}},
      {"steps past the image", {.stride = {2, 2}, .padding = {1, 1}}, {4, 1, 1, 8}, {8, 3, 3, 8}},
      {"steps and dilation", {.stride = {3, 2}, .padding = {2, 3}, .dilation = {2, 4}}, {2, 11, 13, 4}, {6, 3, 3, 4}},
      {"dilation past the padding", {.stride = {3, 3}, .dilation = {2, 2}}, {2, 9, 10, 4}, {6, 3, 3, 4}},
      {"differing", {.stride = {1, 2}, .padding = {0, 2}, .dilation = {3, 1}}, {2, 9, 8, 4}, {6, 2, 5, 4}},
      {"more images than a chunk", {.padding = {1, 1}}, {5, 64, 64, 32}, {4, 3, 3, 32}},
      {"more gradients than a chunk", {.stride = {2, 2}, .padding = {1, 1}}, {5, 64, 64, 8}, {64, 3, 3, 8}},
      {"the whole image", {}, {3, 4, 5, 8}, {16, 4, 5, 8}},
      {"1d", {.spatial_rank = 1, .stride = {2}, .padding = {2}}, {2, 21, 8}, {6, 5, 8}},
      {"3d", {.spatial_rank = 3, .stride = {2, 1, 3}, .padding = {1, 0, 1}}, {2, 5, 6, 7, 16}, {8, 3, 2, 3, 16}},
  };
  return table;
}

class ByProducts : public ::testing::TestWithParam<DType> {
 protected:
  static Tensor random(const Shape& shape, std::uint32_t seed) { return random_tensor(shape, GetParam(), seed); }
  static Tensor made(const Shape& shape) { return Tensor::empty(shape, GetParam()); }
  static Tensor copy(const Tensor& tensor) { return tensor_of(values_of(tensor), tensor.shape(), tensor.dtype()); }
};
INSTANTIATE_TEST_SUITE_P(Of, ByProducts, ::testing::Values(DType::kFloat32, DType::kFloat16, DType::kBFloat16),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

TEST_P(ByProducts, ForwardMatchesReference) {
  for (const ConvCase& c : convolutions()) {
    SCOPED_TRACE(c.name);
    const Shape out = conv_output_shape(c.x, c.weight, c.geometry);
    const Tensor x = random(c.x, 1), weight = random(c.weight, 2);
    for (const Tensor& bias : {Tensor(), random({c.weight.front()}, 4)}) {
      const Tensor expected = made(out), found = made(out);
      reference_of<Convolution>().conv_forward(c.geometry, x, weight, bias, expected);
      cpu::conv_forward_by_products(c.geometry, x, weight, bias, found);
      expect_close(found, expected, bounds_for(GetParam(), c.weight.numel() / c.weight.front() + 1));
    }
  }
}

TEST_P(ByProducts, GradientOfXMatchesReference) {
  for (const ConvCase& c : convolutions()) {
    SCOPED_TRACE(c.name);
    const Shape out = conv_output_shape(c.x, c.weight, c.geometry);
    const Tensor x = random(c.x, 1), weight = random(c.weight, 2), dy = random(out, 3);
    const Tensor expected = made(c.x), found = made(c.x);
    reference_of<Convolution>().conv_backward(c.geometry, x, weight, dy, expected, {}, {}, false);
    cpu::conv_backward_data_by_products(c.geometry, dy, weight, found);
    expect_close(found, expected, bounds_for(GetParam(), c.weight.numel() / c.weight.back()));
  }
}

TEST_P(ByProducts, GradientOfTheWeightMatchesReference) {
  for (const ConvCase& c : convolutions()) {
    SCOPED_TRACE(c.name);
    const Shape out = conv_output_shape(c.x, c.weight, c.geometry);
    const Tensor x = random(c.x, 1), weight = random(c.weight, 2), dy = random(out, 3);
    for (const bool add : {false, true}) {
      const Tensor before = random_tensor(c.weight, DType::kFloat32, 5);
      const Tensor expected = copy(before), found = copy(before);
      reference_of<Convolution>().conv_backward(c.geometry, x, weight, dy, {}, expected, {}, add);
      cpu::conv_backward_weights_by_products(c.geometry, x, dy, add, found);
      expect_close(found, expected, bounds_for(DType::kFloat32, out.rows() + 1));
    }
  }
}

TEST(ConvPhases, HaveEveryPixelOnceAndTheTapsThatMeetIt) {
  using Tap = std::array<std::int64_t, 3>;  // a pixel of x, a tap, a pixel of y
  for (const ConvCase& c : convolutions()) {
    SCOPED_TRACE(c.name);
    const cpu::ConvExtents all(c.geometry, c.x, c.weight, conv_output_shape(c.x, c.weight, c.geometry));
    std::vector<Tap> expected, found;
    all.window.for_each_tap([&](std::int64_t x, std::int64_t tap, std::int64_t y) { expected.push_back({x, tap, y}); });
    std::vector<int> pixels(static_cast<std::size_t>(c.x.numel() / c.x.back()));
    for (const cpu::ConvPhase& phase : cpu::phases_of(all)) {
      for (std::int64_t x = 0; x < phase.pixels(); ++x) ++pixels.at(static_cast<std::size_t>(phase.pixel_of(all, x)));
      phase.extents.window.for_each_tap([&](std::int64_t x, std::int64_t tap, std::int64_t y) {
        found.push_back({phase.pixel_of(all, x), phase.tap_of(all, tap), y});
      });
    }
    EXPECT_EQ(pixels, std::vector<int>(pixels.size(), 1));
    std::ranges::sort(expected);
    std::ranges::sort(found);
    EXPECT_TRUE(found == expected) << found.size() << " for " << expected.size();
  }
}

bool by_products(cpu::ConvPass pass, const ConvGeometry& geometry, const Shape& x, const Shape& weight,
                 bool tiles = true) {
  return cpu::multiplies_matrices(pass, geometry, x, weight, conv_output_shape(x, weight, geometry), tiles);
}

TEST(ByProductsTest, TheirBoundsFollowFromShapes) {
  using cpu::ConvPass;
  const ConvGeometry same{.padding = {1, 1}}, halving{.stride = {2, 2}, .padding = {1, 1}};
  EXPECT_TRUE(by_products(ConvPass::kForward, same, {8, 4, 4, 64}, {64, 3, 3, 64}));
  EXPECT_FALSE(by_products(ConvPass::kForward, same, {8, 8, 8, 64}, {64, 3, 3, 64})) << "wide";
  EXPECT_TRUE(by_products(ConvPass::kForward, {}, {8, 7, 7, 64}, {64, 1, 1, 64}));
  EXPECT_TRUE(by_products(ConvPass::kData, same, {8, 4, 4, 64}, {64, 3, 3, 64}));
  EXPECT_FALSE(by_products(ConvPass::kData, same, {8, 8, 8, 64}, {64, 3, 3, 64})) << "wide";
  EXPECT_TRUE(by_products(ConvPass::kData, halving, {8, 32, 32, 64}, {64, 3, 3, 64}));
  EXPECT_FALSE(by_products(ConvPass::kData, halving, {8, 32, 32, 32}, {64, 3, 3, 32})) << "few channels";
  EXPECT_FALSE(by_products(ConvPass::kData, {}, {8, 7, 7, 64}, {64, 7, 7, 64})) << "zeros";
  EXPECT_FALSE(by_products(ConvPass::kData, {.stride = {4, 4}}, {8, 32, 32, 64}, {64, 4, 4, 64})) << "many phases";
  EXPECT_TRUE(by_products(ConvPass::kWeights, same, {8, 14, 14, 64}, {64, 3, 3, 64}));
  EXPECT_TRUE(by_products(ConvPass::kWeights, {}, {8, 32, 32, 64}, {64, 1, 1, 64}));
  EXPECT_TRUE(by_products(ConvPass::kWeights, halving, {8, 32, 32, 64}, {64, 3, 3, 64}));
  EXPECT_FALSE(by_products(ConvPass::kWeights, same, {8, 16, 16, 64}, {64, 3, 3, 64})) << "wide";
  EXPECT_FALSE(by_products(ConvPass::kWeights, same, {8, 14, 14, 8}, {64, 3, 3, 8})) << "few channels";
  const ConvGeometry line{.spatial_rank = 1, .stride = {2, 0, 0}, .padding = {4, 0, 0}, .dilation = {1, 0, 0}};
  EXPECT_TRUE(by_products(ConvPass::kWeights, line, {8, 1000, 64}, {64, 9, 64}));
  EXPECT_FALSE(by_products(ConvPass::kWeights, line, {8, 1000000, 64}, {64, 9, 64})) << "memory";
  const ConvGeometry grouped{.padding = {1, 1}, .groups = 2};
  EXPECT_FALSE(by_products(ConvPass::kForward, grouped, {8, 4, 4, 64}, {64, 3, 3, 32}));
}

TEST(ByProductsTest, WithoutTilesOnlyTheShortestRowsAre) {
  using cpu::ConvPass;
  const ConvGeometry same{.padding = {1, 1}}, halving{.stride = {2, 2}, .padding = {1, 1}};
  EXPECT_TRUE(by_products(ConvPass::kForward, same, {8, 2, 2, 64}, {64, 3, 3, 64}, false));
  EXPECT_FALSE(by_products(ConvPass::kForward, same, {8, 3, 3, 64}, {64, 3, 3, 64}, false));
  EXPECT_FALSE(by_products(ConvPass::kData, halving, {8, 4, 4, 64}, {64, 3, 3, 64}, false));
  EXPECT_TRUE(by_products(ConvPass::kWeights, halving, {64, 30, 30, 32}, {64, 3, 3, 32}, false));
  EXPECT_FALSE(by_products(ConvPass::kWeights, halving, {64, 32, 32, 32}, {64, 3, 3, 32}, false)) << "wide";
  EXPECT_FALSE(by_products(ConvPass::kWeights, halving, {64, 30, 30, 16}, {64, 3, 3, 16}, false)) << "few channels";
  EXPECT_TRUE(by_products(ConvPass::kWeights, same, {32, 4, 4, 64}, {64, 3, 3, 64}, false));
  EXPECT_FALSE(by_products(ConvPass::kWeights, same, {33, 4, 4, 64}, {64, 3, 3, 64}, false)) << "many pixels";
  EXPECT_TRUE(by_products(ConvPass::kWeights, {}, {64, 7, 7, 64}, {64, 1, 1, 64}, false));
  EXPECT_FALSE(by_products(ConvPass::kWeights, {}, {64, 8, 8, 64}, {64, 1, 1, 64}, false)) << "wide";
}

TEST(ByProductsTest, AreChosenWhereTheProcessorMultipliesTiles) {
  using cpu::ConvAlgorithm;
  const Shape x{8, 4, 4, 64}, weight{64, 3, 3, 64};
  const auto chosen = [&](DType dtype) {
    return cpu::conv_algorithm(cpu::ConvPass::kForward, {.padding = {1, 1}}, x, weight, x, dtype);
  };
  EXPECT_EQ(chosen(DType::kBFloat16), cpu::has_bfloat16_tiles() ? ConvAlgorithm::kProducts : ConvAlgorithm::kDirect);
  EXPECT_EQ(chosen(DType::kFloat32), ConvAlgorithm::kDirect);
}

TEST(ByProductsTest, TilesTakeFewChannelsToo) {
  using cpu::ConvPass;
  const auto chosen = [](ConvPass pass, const ConvGeometry& geometry, const Shape& x, const Shape& weight) {
    return cpu::conv_dtype(pass, geometry, x, conv_output_shape(x, weight, geometry), DType::kBFloat16);
  };
  const DType native = cpu::has_native_bfloat16() ? DType::kBFloat16 : DType::kFloat32;
  const DType tiled = cpu::has_bfloat16_tiles() ? DType::kBFloat16 : DType::kFloat32;
  const ConvGeometry same{.padding = {1, 1}}, grouped{.padding = {1, 1}, .groups = 8};
  for (const ConvPass pass : {ConvPass::kForward, ConvPass::kData, ConvPass::kWeights}) {
    EXPECT_EQ(chosen(pass, same, {8, 32, 32, 64}, {64, 3, 3, 64}), native);
    EXPECT_EQ(chosen(pass, same, {8, 4, 4, 16}, {64, 3, 3, 16}), native) << "short rows";
    EXPECT_EQ(chosen(pass, {.stride = {2, 2}}, {8, 8, 8, 64}, {64, 3, 3, 64}), native) << "steps of two";
    EXPECT_EQ(chosen(pass, {.padding = {1, 1}, .groups = 4}, {8, 8, 8, 64}, {64, 3, 3, 16}), native) << "groups";
    EXPECT_EQ(chosen(pass, same, {8, 32, 32, 8}, {8, 3, 3, 8}), tiled);
    EXPECT_EQ(chosen(pass, same, {8, 32, 32, 1}, {8, 3, 3, 1}), DType::kFloat32);
    EXPECT_EQ(chosen(pass, grouped, {8, 32, 32, 64}, {64, 3, 3, 8}), DType::kFloat32);
  }
  EXPECT_EQ(chosen(ConvPass::kForward, same, {8, 32, 32, 3}, {64, 3, 3, 3}), tiled);
  EXPECT_EQ(chosen(ConvPass::kWeights, same, {8, 32, 32, 3}, {64, 3, 3, 3}), DType::kFloat32);
}

}  // namespace
}  // namespace lockstep::kernels
