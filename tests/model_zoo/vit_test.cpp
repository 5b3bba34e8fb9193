// SPDX-License-Identifier: Apache-2.0
#include "model_zoo/vit.h"

#include <gmock/gmock.h>

#include "model_zoo/build.h"
#include "runtime/autograd/grad_mode.h"
#include "runtime/base/error.h"
#include "tests/model_zoo/gradients.h"

namespace lockstep::model_zoo {
namespace {

using kernels::testing::expect_close;
using kernels::testing::random_tensor;
using kernels::testing::values_of;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

constexpr std::int64_t kClasses = 5;
const VitOptions kSmallVit{.patch = 4, .layers = 2, .heads = 2, .width = 8, .hidden = 12};

ModelInput images(const Shape& shape = {8, 12, 3}) {
  return {.sample_shape = shape, .outputs = kClasses, .classes = kClasses};
}

Tensor batch(std::int64_t samples) { return random_tensor({samples, 8, 12, 3}, DType::kFloat32, 1); }

/// With a classifier that does not start from zero: otherwise nothing before it has a gradient.
std::unique_ptr<nn::Module> make(const VitOptions& options = kSmallVit, const ModelInput& input = images()) {
  auto model = make_model(options, input);
  model->choose_initializers([](const nn::Parameter& parameter) {
    return parameter.name == "classifier.weight" ? nn::Initializer::normal(0.5) : parameter.initializer;
  });
  nn::initialize(*model, 1);
  return model;
}

Tensor loss_of_images(nn::Module& model) {
  const Tensor labels = Tensor::from(std::vector<std::int64_t>{0, 4, 2, 1}, {4});
  return ops::cross_entropy(model.forward(batch(4)), labels);
}

TEST(Vit, AnswersImagesAndReachesEveryParameter) {
  const auto model = make();
  const Tensor y = model->forward(batch(3));
  EXPECT_EQ(y.shape(), (Shape{3, kClasses}));
  ops::sum(ops::mul(y, y)).backward();
  for (const nn::Parameter& parameter : model->parameters()) {
    ASSERT_TRUE(parameter.tensor.grad().defined()) << parameter.name;
    EXPECT_THAT(values_of(parameter.tensor.grad()), Contains(Not(0.0))) << parameter.name;
  }
}

TEST(Vit, TakesABatchWithoutSamples) {
  const auto model = make();
  const Tensor y = model->forward(batch(0));
  EXPECT_EQ(y.shape(), (Shape{0, kClasses}));
  ops::sum(y).backward();
  for (const nn::Parameter& parameter : model->parameters()) {
    EXPECT_THAT(values_of(parameter.tensor.grad()), Each(0)) << parameter.name;
  }
}

TEST(Vit, EvaluatesEachSampleByItself) {
  VitOptions options = kSmallVit;
  options.dropout = options.attention_dropout = 0.5;
  const auto model = make(options);
  model->train(false);
  const autograd::NoGrad no_grad;
  const Tensor x = batch(3);
  expect_close(model->forward(x.rows(1, 2)), model->forward(x).rows(1, 2), {.relative = 1e-5, .absolute = 1e-6});
}

TEST(Vit, CheckpointsItsBlocksBitForBit) {
  for (const std::optional<DType> dtype : {std::optional<DType>(), std::optional(DType::kFloat16)}) {
    VitOptions options = kSmallVit;
    options.dropout = 0.2;
    options.attention_dropout = 0.1;
    const auto plain = gradients_of(*make(options), loss_of_images, dtype);
    options.checkpoint_activations = true;
    EXPECT_EQ(gradients_of(*make(options), loss_of_images, dtype), plain);
    options.dropout = 0;
    EXPECT_NE(gradients_of(*make(options), loss_of_images, dtype), plain);
  }
}

// A gradient passes some 20 operations, each of which rounds once: 2^-11 or 2^-8 of its size.
TEST(Vit, InSixteenBitsIsThatInThirtyTwoToRounding) {
  const auto exact = gradients_of(*make(), loss_of_images);
  EXPECT_LT(distance_between(exact, gradients_of(*make(), loss_of_images, DType::kFloat16)), 20 * 0x1p-11);
  EXPECT_LT(distance_between(exact, gradients_of(*make(), loss_of_images, DType::kBFloat16)), 20 * 0x1p-8);
  EXPECT_GT(distance_between(exact, gradients_of(*make(), loss_of_images, DType::kBFloat16)), 0);
}

TEST(Vit, NamesItsParameters) {
  std::vector<std::string> names;
  VitOptions options = kSmallVit;
  options.layers = 1;
  for (const nn::Parameter& parameter : make(options)->parameters()) names.push_back(parameter.name);
  EXPECT_THAT(names, ElementsAre("class_token", "patches.weight", "patches.bias", "position_embedding.weight",
                                 "block0.attention_norm.weight", "block0.attention_norm.bias",
                                 "block0.attention.input.weight", "block0.attention.input.bias",
                                 "block0.attention.output.weight", "block0.attention.output.bias",
                                 "block0.feed_forward_norm.weight", "block0.feed_forward_norm.bias",
                                 "block0.feed_forward.hidden.weight", "block0.feed_forward.hidden.bias",
                                 "block0.feed_forward.output.weight", "block0.feed_forward.output.bias", "norm.weight",
                                 "norm.bias", "classifier.weight", "classifier.bias"));
}

TEST(Vit, StartsAsTorchvisions) {
  const auto model = build(VitOptions{.patch = 8, .layers = 1, .heads = 2, .width = 64}, images({64, 64, 3}), 1);
  const auto measure = [&](const std::string& name, auto&& of) {
    for (const nn::Parameter& parameter : model->parameters()) {
      if (parameter.name == name) return of(values_of(parameter.tensor));
    }
    return -1.0;
  };
  const auto deviation = [&](const std::string& name) {
    return measure(name, [](const std::vector<double>& values) {
      double squares = 0;
      for (const double value : values) squares += value * value;
      return std::sqrt(squares / static_cast<double>(values.size()));
    });
  };
  const auto largest = [&](const std::string& name) {
    return measure(name, [](const std::vector<double>& values) { return *std::ranges::max_element(values); });
  };
  EXPECT_EQ(deviation("class_token"), 0);
  EXPECT_NEAR(deviation("patches.weight"), 1 / std::sqrt(8.0 * 8 * 3), 0.002);
  EXPECT_EQ(deviation("patches.bias"), 0);
  EXPECT_NEAR(deviation("position_embedding.weight"), 0.02, 0.001);
  EXPECT_NEAR(largest("block0.attention.input.weight"), std::sqrt(6.0 / (64 + 192)), 0.001);
  EXPECT_NEAR(largest("block0.attention.output.weight"), 0.125, 0.001);
  EXPECT_NEAR(largest("block0.feed_forward.hidden.weight"), std::sqrt(6.0 / (64 + 256)), 0.001);
  EXPECT_NEAR(deviation("block0.feed_forward.hidden.bias"), 1e-6, 2e-7);
  EXPECT_EQ(deviation("block0.attention.input.bias"), 0);
  EXPECT_EQ(deviation("classifier.weight"), 0);
  EXPECT_EQ(deviation("norm.weight"), 1);
}

TEST(Vit, RefusesWhatItDoesNotFit) {
  const auto refuses = [](const VitOptions& options, const ModelInput& input, const std::string& message) {
    EXPECT_THAT([&] { build(options, input, 1); }, ThrowsMessage<FieldError>(HasSubstr(message)));
  };
  refuses(kSmallVit, images({64}), "model.vit: needs samples [height, width, channels], the data has [64]");
  refuses(kSmallVit, images({8, 10, 3}), "model.vit.patch: 4 does not divide the extents of the images, [8, 10, 3]");
  ModelInput labelled = images();
  labelled.target_shape = {8, 12};
  refuses(kSmallVit, labelled, "model.vit: needs one label an image, the data has labels [8, 12]");
  VitOptions options = kSmallVit;
  options.heads = 3;
  refuses(options, images(), "model.vit.heads: must be a divisor of width, is 3");
  options = kSmallVit;
  options.patch = 0;
  refuses(options, images(), "model.vit.patch: must be >= 1, is 0");
  options = kSmallVit;
  options.attention_dropout = 1;
  refuses(options, images(), "model.vit.attention_dropout: must be >= 0 and < 1");
}

TEST(Vit, GivesTheNumbersOfARegression) {
  EXPECT_EQ(make(kSmallVit, {.sample_shape = {8, 12, 3}, .outputs = 2, .target_shape = {2}})->forward(batch(3)).shape(),
            (Shape{3, 2}));
}

}  // namespace
}  // namespace lockstep::model_zoo
