// SPDX-License-Identifier: Apache-2.0
#include "model_zoo/mobilenet_v2.h"

#include <gmock/gmock.h>

#include <cmath>
#include <map>

#include "model_zoo/build.h"
#include "runtime/base/error.h"
#include "runtime/ops/ops.h"
#include "tests/runtime/kernels/tensors.h"

namespace lockstep::model_zoo {
namespace {

using kernels::testing::values_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::unique_ptr<nn::Module> mobilenet(const MobilenetV2Options& options, const Shape& image = {32, 32, 3}) {
  return build(options, {.sample_shape = image, .outputs = 10, .classes = 10}, 1);
}

/// What the modules whose name has one dot give, in their order.
std::vector<Shape> shapes_of_features(nn::Module& model, const Shape& image) {
  std::vector<Shape> shapes;
  model.for_each([&](const std::string& path, nn::Module& module) {
    if (!path.starts_with("features.") || path.find('.', 9) != std::string::npos) return;
    module.register_forward_hook([&shapes](nn::Module&, std::span<const Tensor>, const Tensor& y) {
      shapes.push_back(y.shape());
      return Tensor();
    });
  });
  model(Tensor::zeros(image.batched(1), DType::kFloat32));
  return shapes;
}

std::vector<std::int64_t> extents_of(const std::vector<Shape>& shapes) {
  std::vector<std::int64_t> extents;
  for (const Shape& shape : shapes) extents.push_back(shape[1]);
  return extents;
}

TEST(MobilenetV2, HalvesTheExtentsFiveTimesAndThoseOfSmallImagesThrice) {
  const Shape image{64, 64, 3};
  EXPECT_THAT(extents_of(shapes_of_features(*mobilenet({.width = 0.1}, image), image)),
              ElementsAre(32, 32, 16, 16, 8, 8, 8, 4, 4, 4, 4, 4, 4, 4, 2, 2, 2, 2, 2));
  EXPECT_THAT(extents_of(shapes_of_features(*mobilenet({.width = 0.1, .small_images = true}, image), image)),
              ElementsAre(64, 64, 64, 64, 32, 32, 32, 16, 16, 16, 16, 16, 16, 16, 8, 8, 8, 8, 8));
}

TEST(MobilenetV2, HasTorchvisionsTensors) {
  std::map<std::string, Shape> shapes;
  const auto model = mobilenet({});
  for (const nn::Parameter& parameter : model->parameters()) shapes[parameter.name] = parameter.tensor.shape();
  EXPECT_EQ(shapes.size(), 158u);
  EXPECT_EQ(model->statistics().size(), 52u);
  EXPECT_EQ(shapes.at("features.0.0.weight"), (Shape{32, 3, 3, 3}));
  EXPECT_EQ(shapes.at("features.1.conv.0.0.weight"), (Shape{32, 3, 3, 1})) << "each channel by itself";
  EXPECT_EQ(shapes.at("features.1.conv.1.weight"), (Shape{16, 1, 1, 32}));
  EXPECT_EQ(shapes.at("features.2.conv.0.0.weight"), (Shape{96, 1, 1, 16}));
  EXPECT_EQ(shapes.at("features.17.conv.3.bias"), (Shape{320}));
  EXPECT_EQ(shapes.at("features.18.0.weight"), (Shape{1280, 1, 1, 320}));
  EXPECT_EQ(shapes.at("classifier.1.weight"), (Shape{10, 1280}));
}

TEST(MobilenetV2, StartsAsTorchvisions) {
  std::map<std::string, double> deviations;
  for (const nn::Parameter& parameter : mobilenet({})->parameters()) {
    double squares = 0;
    for (const double value : values_of(parameter.tensor)) squares += value * value;
    deviations[parameter.name] = std::sqrt(squares / static_cast<double>(parameter.tensor.numel()));
  }
  // Of the outputs times the kernel's extents, whether channels are convolved together or each by itself.
  EXPECT_NEAR(deviations["features.18.0.weight"], std::sqrt(2.0 / 1280), 1e-3);
  EXPECT_NEAR(deviations["features.17.conv.1.0.weight"], std::sqrt(2.0 / (960 * 9)), 1e-3);
  EXPECT_NEAR(deviations["classifier.1.weight"], 0.01, 3e-4);
  EXPECT_EQ(deviations["classifier.1.bias"], 0);
  EXPECT_EQ(deviations["features.17.conv.3.weight"], 1);
}

TEST(MobilenetV2, AddsABlocksInputAndEndsItsLayersAt6) {
  const auto model = mobilenet({.width = 0.1});
  model->train(false);
  std::vector<nn::Module*> blocks;
  model->for_each([&blocks](const std::string& path, nn::Module& module) {
    if (path == "features.8" || path == "features.8.conv" || path == "features.8.conv.0") blocks.push_back(&module);
  });
  ASSERT_EQ(blocks.size(), 3u);
  const std::int64_t channels = 8;
  const Tensor x = kernels::testing::random_tensor({2, 4, 4, channels}, DType::kFloat32, 1, -40, 40);
  kernels::testing::expect_close((*blocks[0])(x), ops::add(x, (*blocks[1])(x)), {.relative = 1e-5, .absolute = 1e-5});
  const std::vector<double> wide = values_of((*blocks[2])(x));
  EXPECT_EQ(*std::ranges::min_element(wide), 0);
  EXPECT_EQ(*std::ranges::max_element(wide), 6);
}

TEST(MobilenetV2, RefusesOptionsWithoutAMeaning) {
  EXPECT_THAT([] { mobilenet({.width = 0}); },
              ThrowsMessage<FieldError>(HasSubstr("model.mobilenet_v2.width: must be > 0 and <= 64, is 0")));
  EXPECT_THROW(mobilenet({.width = 1e300}), FieldError);
  EXPECT_THAT([] { mobilenet({.dropout = 1}); }, ThrowsMessage<FieldError>(HasSubstr("model.mobilenet_v2.dropout")));
}

}  // namespace
}  // namespace lockstep::model_zoo
