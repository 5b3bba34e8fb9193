// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/infer/sliding_window.h"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"

namespace lockstep::train {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Shape shape_in(const json& extents) {
  return Shape(std::span<const std::int64_t>(extents.get<std::vector<std::int64_t>>()));
}

/// That of tests/golden/families/sliding_window.py.
Tensor made_volume(const Shape& extents) {
  const Shape shape{extents[0], extents[1], extents[2], 2};
  std::vector<float> values;
  for (std::int64_t i = 0; i < shape.numel(); ++i) values.push_back(static_cast<float>(i * 37 % 101 - 50) / 50);
  return Tensor::from(values, shape);
}

/// (x0 - 2 x1) (1 + i), and x1 + i, for voxel i of a window.
Tensor answers_by_place(const Tensor& windows) {
  const std::size_t voxels = static_cast<std::size_t>(windows.numel() / windows.size(0)) / 2;
  const auto x = windows.as<float>();
  std::vector<float> y(x.size());
  for (std::size_t i = 0; i < x.size() / 2; ++i) {
    const auto place = static_cast<float>(i % voxels);
    y[2 * i] = (x[2 * i] - 2 * x[2 * i + 1]) * (1 + place);
    y[2 * i + 1] = x[2 * i + 1] + place;
  }
  return Tensor::from(y, windows.shape());
}

SlidingWindowOptions options_in(const json& golden) {
  return {.overlap = golden["overlap"],
          .weights = golden["gaussian"].get<bool>() ? WindowWeights::kGaussian : WindowWeights::kConstant,
          .sigma_scale = golden["sigma_scale"]};
}

TEST(SlidingWindow, AnswersAreThoseOfMonai) {
  const json golden = json::parse(std::ifstream(LOCKSTEP_SOURCE_DIR "/tests/golden/sliding_window.json"));
  for (const auto& [name, expected] : golden["sliding_window"].items()) {
    const Shape patch = shape_in(expected["patch"]);
    SlidingWindowOptions options = options_in(expected);
    const std::vector<float> weights = window_weights(patch, options);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      EXPECT_NEAR(weights[i], expected["weights"][i].get<double>(), 1e-6) << name << ", weight " << i;
    }
    for (const std::int64_t batch : {0, 1, 2}) {
      options.batch = batch;
      const Tensor y = sliding_window(answers_by_place, made_volume(shape_in(expected["extents"])), patch, options);
      ASSERT_EQ(static_cast<std::size_t>(y.numel()), expected["y"].size()) << name;
      for (std::int64_t i = 0; i < y.numel(); ++i) {
        EXPECT_NEAR(y.item(i), expected["y"][static_cast<std::size_t>(i)].get<double>(), 3e-4) << name << ", " << i;
      }
    }
  }
}

TEST(SlidingWindow, TheLastWindowEndsWithTheVolume) {
  EXPECT_THAT(window_starts(10, 4, 0.25), ElementsAre(0, 3, 6));
  EXPECT_THAT(window_starts(11, 4, 0.25), ElementsAre(0, 3, 6, 7));
  EXPECT_THAT(window_starts(4, 4, 0.25), ElementsAre(0));
  EXPECT_THAT(window_starts(5, 3, 0.9), ElementsAre(0, 1, 2)) << "a step of at least one voxel";
}

TEST(SlidingWindow, TheBatchIsBoundedByItsVoxels) {
  std::vector<std::int64_t> batches;
  const auto model = [&batches](const Tensor& windows) {
    batches.push_back(windows.size(0));
    return Tensor::zeros(Shape(windows.shape().extents().first(4)), DType::kFloat32);
  };
  const Tensor volume = Tensor::zeros({64, 64, 200, 1}, DType::kFloat32);
  EXPECT_EQ(sliding_window(model, volume, {64, 64, 64}, {.overlap = 0}).shape(), (Shape{64, 64, 200, 1}));
  EXPECT_THAT(batches, ElementsAre(2, 2)) << "2^18 voxels a window, 2^19 at once";
  batches.clear();
  sliding_window(model, Tensor::zeros({128, 64, 128, 1}, DType::kFloat32), {128, 64, 128}, {});
  EXPECT_THAT(batches, ElementsAre(1));
}

TEST(SlidingWindow, AModuleAnswersAsItStands) {
  struct Doubled : nn::Module {
    Tensor forward(const Tensor& x) override { return answers_by_place(x); }
  } module;
  const Tensor volume = made_volume({4, 5, 3});
  const Tensor expected = sliding_window(answers_by_place, volume, {2, 2, 2});
  const Tensor found = sliding_window(module, volume, {2, 2, 2});
  EXPECT_EQ(found.shape(), (Shape{4, 5, 3, 2}));
  EXPECT_TRUE(std::ranges::equal(found.as<float>(), expected.as<float>()));
}

TEST(SlidingWindow, AnswersOf16BitsAreAveragedInFloat32) {
  const auto halves = [](const Tensor& windows) {
    return Tensor::from(std::vector<float>(static_cast<std::size_t>(windows.numel()), 0.1f), windows.shape())
        .to(DType::kFloat16);
  };
  const Tensor y = sliding_window(halves, made_volume({3, 2, 2}), {2, 2, 2}, {.weights = WindowWeights::kGaussian});
  EXPECT_EQ(y.dtype(), DType::kFloat32);
  EXPECT_NEAR(y.item(0), 0.1, 1e-4);
}

TEST(SlidingWindow, WrongUseIsNamed) {
  const Tensor volume = made_volume({4, 4, 4});
  const auto answer = [&](const Shape& patch, const SlidingWindowOptions& options) {
    return [=] { sliding_window(answers_by_place, volume, patch, options); };
  };
  EXPECT_THAT(answer({2, 2, 2}, {.overlap = 1}), ThrowsMessage<UsageError>(HasSubstr("overlap must be >= 0 and < 1")));
  EXPECT_THAT(answer({2, 2, 2}, {.sigma_scale = 0}), ThrowsMessage<UsageError>(HasSubstr("sigma_scale must be > 0")));
  EXPECT_THAT(answer({2, 2, 2}, {.batch = -1}), ThrowsMessage<UsageError>(HasSubstr("batch must be >= 0")));
  EXPECT_THAT(answer({2, 2}, {}), ThrowsMessage<ShapeError>(HasSubstr("a patch [D, H, W]")));
  EXPECT_THAT(
      [&] {
        sliding_window(answers_by_place, volume.reshaped({4, 4, 8}), {2, 2, 2});
      },
      ThrowsMessage<ShapeError>(HasSubstr("a volume [D, H, W, C]")));
  const auto of_class = [](const Tensor& windows) { return Tensor::zeros({windows.size(0), 3}, DType::kFloat32); };
  EXPECT_THAT(
      [&] {
        sliding_window(of_class, volume, {2, 2, 2});
      },
      ThrowsMessage<ShapeError>(HasSubstr("expected an answer for each voxel")));
}

}  // namespace
}  // namespace lockstep::train
