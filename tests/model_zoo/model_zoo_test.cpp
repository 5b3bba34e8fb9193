// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <functional>

#include "model_zoo/build.h"
#include "model_zoo/resnet.h"
#include "runtime/autograd/grad_mode.h"
#include "runtime/base/error.h"
#include "runtime/nn/layers.h"
#include "runtime/nn/step_context.h"
#include "runtime/ops/ops.h"
#include "tests/model_zoo/every_model.h"
#include "tests/runtime/kernels/tensors.h"

namespace lockstep::model_zoo {
namespace {

using kernels::testing::random_tensor;
using kernels::testing::values_of;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

using kernels::Activation;

std::unique_ptr<nn::Module> make(const ModelOptions& options, const Shape& sample, std::int64_t outputs = 10) {
  return build(options, {sample, outputs}, 1);
}

std::int64_t parameters_of(const nn::Module& model) {
  std::int64_t count = 0;
  for (const nn::Parameter& parameter : model.parameters()) count += parameter.tensor.numel();
  return count;
}

std::vector<std::string> names_of(const nn::Module& model) {
  std::vector<std::string> names;
  for (const nn::Parameter& parameter : model.parameters()) names.push_back(parameter.name);
  return names;
}

class EveryModel : public ::testing::TestWithParam<examples::ModelExample> {
 protected:
  static std::unique_ptr<nn::Module> model(std::uint64_t seed = 1) {
    return build(GetParam().options, GetParam().input, seed);
  }
};

TEST_P(EveryModel, MapsABatchToItsOutputsAndReachesEveryParameter) {
  const auto net = model();
  const Tensor y = net->forward(batch_of(GetParam(), 3, 1));
  EXPECT_EQ(y.shape(), answer_shape(GetParam(), 3));
  // Of a sum the outputs of a norm would have no gradient.
  ops::sum(ops::mul(y, y)).backward();
  for (const nn::Parameter& parameter : net->parameters()) {
    EXPECT_TRUE(parameter.tensor.grad().defined()) << parameter.name;
  }
}

TEST_P(EveryModel, TakesABatchWithoutSamples) {
  const auto net = model();
  const Tensor y = net->forward(batch_of(GetParam(), 0, 1));
  EXPECT_EQ(y.shape(), answer_shape(GetParam(), 0));
  ops::sum(y).backward();
  for (const nn::Parameter& parameter : net->parameters()) {
    EXPECT_THAT(values_of(parameter.tensor.grad()), ::testing::Each(0)) << parameter.name;
  }
}

TEST_P(EveryModel, EvaluatesEachSampleByItself) {
  const auto net = model();
  net->train(false);
  const autograd::NoGrad no_grad;
  const Tensor x = batch_of(GetParam(), 3, 1);
  const Tensor together = net->forward(x), alone = net->forward(x.rows(1, 2));
  kernels::testing::expect_close(alone, together.rows(1, 2), {.relative = 1e-4, .absolute = 1e-4});
}

TEST_P(EveryModel, StartsFromItsSeedAlone) {
  const auto start = [](std::uint64_t seed) {
    std::vector<std::vector<double>> values;
    for (const nn::Parameter& parameter : model(seed)->parameters()) values.push_back(values_of(parameter.tensor));
    return values;
  };
  EXPECT_EQ(start(1), start(1));
  EXPECT_NE(start(1), start(2));
}

/// Other options of kinds whose parts depend on them.
std::vector<examples::ModelExample> variants() {
  const auto of = [](const Shape& sample, std::int64_t outputs) { return ModelInput{sample, outputs}; };
  return {
      {"mlp_linear", MlpOptions{}, of({4, 3}, 2)},
      {"mlp_gelu_tanh", MlpOptions{.hidden = {8, 7}, .activation = Activation::kGeluTanh}, of({3, 2, 2}, 4)},
      {"convnet_global",
       ConvnetOptions{.blocks = {{.channels = 4, .kernel = 5, .batch_norm = false, .activation = Activation::kGelu}},
                      .head_pool = HeadPool::kGlobalAverage},
       of({7, 5, 2}, 3)},
      {"resnet_cifar", ResnetOptions{.depth = 18, .stem = ResnetStem::kCifar, .width = 4}, of({16, 16, 3}, 10)},
      {"resnet_bottleneck", ResnetOptions{.depth = 50, .width = 4}, of({32, 32, 3}, 5)},
      {"resnet_one_pixel", ResnetOptions{.depth = 18, .width = 2}, of({1, 1, 1}, 2)}};
}

INSTANTIATE_TEST_SUITE_P(Models, EveryModel, ::testing::ValuesIn(examples::every_model()),
                         [](const auto& each) { return each.param.name; });
INSTANTIATE_TEST_SUITE_P(Variants, EveryModel, ::testing::ValuesIn(variants()),
                         [](const auto& each) { return each.param.name; });

TEST(Mlp, NamesItsLayersAndHasNoBiasBeforeABatchNorm) {
  EXPECT_THAT(names_of(*make(MlpOptions{.hidden = {8}}, {5})),
              ElementsAre("hidden0_linear.weight", "hidden0_linear.bias", "output.weight", "output.bias"));
  EXPECT_THAT(
      names_of(*make(MlpOptions{.hidden = {8}, .batch_norm = true}, {5})),
      ElementsAre("hidden0_linear.weight", "hidden0_norm.weight", "hidden0_norm.bias", "output.weight", "output.bias"));
  EXPECT_EQ(parameters_of(*make(MlpOptions{.hidden = {8}, .outputs = 17}, {5})), 5 * 8 + 8 + 8 * 17 + 17);
}

TEST(Convnet, NamesItsLayers) {
  const auto model = make(
      ConvnetOptions{.blocks = {{.channels = 4, .max_pool = 2}, {.channels = 6, .batch_norm = false}}, .hidden = {9}},
      {8, 8, 1});
  EXPECT_THAT(names_of(*model), ElementsAre("block0_conv.weight", "block0_norm.weight", "block0_norm.bias",
                                            "block1_conv.weight", "block1_conv.bias", "hidden0.weight", "hidden0.bias",
                                            "classifier.weight", "classifier.bias"));
  EXPECT_EQ(parameters_of(*model), 9 * 4 + 2 * 4 + 9 * 4 * 6 + 6 + (4 * 4 * 6 * 9 + 9) + (9 * 10 + 10));
}

TEST(Convnet, FusesReluButNotGeluIntoTheBatchNorm) {
  const auto children = [](const ConvBlockOptions& block) {
    std::vector<std::string> names;
    make(ConvnetOptions{.blocks = {block}}, {4, 4, 1})->for_each([&](const std::string& path, nn::Module&) {
      names.push_back(path);
    });
    return names;
  };
  EXPECT_THAT(children({.channels = 2}), ElementsAre("", "block0_conv", "block0_norm", "flatten", "classifier"));
  EXPECT_THAT(children({.channels = 2, .activation = Activation::kGelu}),
              ElementsAre("", "block0_conv", "block0_norm", "block0_activation", "flatten", "classifier"));
}

TEST(Mlp, MakesAHiddenLayerOneOperationUnlessABatchNormComesBetween) {
  const auto children = [](const MlpOptions& options) {
    std::vector<std::string> names;
    make(options, {4})->for_each([&](const std::string& path, nn::Module&) { names.push_back(path); });
    return names;
  };
  EXPECT_THAT(children({.hidden = {3}, .activation = Activation::kGeluTanh}),
              ElementsAre("", "flatten", "hidden0_linear", "output"));
  EXPECT_THAT(children({.hidden = {3}, .activation = Activation::kGelu, .batch_norm = true}),
              ElementsAre("", "flatten", "hidden0_linear", "hidden0_norm", "hidden0_activation", "output"));
}

/// Uninitialised, which is quicker.
std::unique_ptr<nn::Module> resnet(const ResnetOptions& options, std::int64_t classes) {
  return make_model(options, {{32, 32, 3}, classes});
}

TEST(Resnet, OfSmallImagesHasTheParametersOfA3x3Stem) {
  EXPECT_EQ(parameters_of(*resnet({.depth = 18, .stem = ResnetStem::kCifar}, 10)), 11'173'962);
}

TEST(Resnet, HasTorchvisionsNumberOfTensors) {
  const auto count = [](const ResnetOptions& options) { return resnet(options, 10)->parameters().size(); };
  EXPECT_EQ(count({.depth = 18, .width = 4}), 62u);
  EXPECT_EQ(count({.depth = 34, .width = 4}), 110u);
  EXPECT_EQ(count({.depth = 50, .width = 4}), 161u);
  EXPECT_EQ(resnet({.depth = 18, .width = 4}, 10)->statistics().size(), 20u);
  EXPECT_EQ(resnet({.depth = 50, .width = 4}, 10)->statistics().size(), 53u);
}

TEST(Resnet, NamesItsLayers) {
  const std::vector<std::string> names = names_of(*resnet({.depth = 18, .width = 4}, 10));
  EXPECT_THAT(names, ::testing::IsSupersetOf({"stem_conv.weight", "stem_norm.bias", "stage0_block0.conv0.weight",
                                              "stage1_block0.shortcut_conv.weight", "stage3_block1.norm1.weight",
                                              "classifier.bias"}));
  EXPECT_THAT(names, ::testing::Not(::testing::Contains("stage0_block0.shortcut_conv.weight")));
}

TEST(Resnet, ZeroInitStartsEveryBlockAsItsShortcut) {
  const auto model = resnet({.depth = 18, .stem = ResnetStem::kCifar, .width = 4, .zero_init_residual = true}, 10);
  int zeros = 0;
  for (const nn::Parameter& parameter : model->parameters()) {
    if (!parameter.name.ends_with("norm1.weight")) continue;
    EXPECT_THAT(values_of(parameter.tensor), ::testing::Each(0));
    ++zeros;
  }
  EXPECT_EQ(zeros, 8);
}

/// The strides: every stage but the first halves the extents, the stem of ImageNet quarters them.
TEST(Resnet, DownsamplesAsMuchAsItsStemSays) {
  const auto extents = [](ResnetStem stem) {
    const auto model = resnet({.depth = 18, .stem = stem, .width = 2}, 10);
    std::vector<std::int64_t> heights;
    Tensor x = Tensor::zeros({1, 64, 64, 3}, DType::kFloat32);
    model->for_each([&](const std::string& path, nn::Module& module) {
      const bool top = !path.empty() && path.find('.') == std::string::npos;
      if (!top || path == "pool" || path == "classifier") return;
      x = module.forward(x);
      if (path.ends_with("block1")) heights.push_back(x.size(1));
    });
    return heights;
  };
  EXPECT_THAT(extents(ResnetStem::kCifar), ElementsAre(64, 32, 16, 8));
  EXPECT_THAT(extents(ResnetStem::kImagenet), ElementsAre(16, 8, 4, 2));
}

auto making(const ModelOptions& options, const Shape& sample) {
  return [=] { make(options, sample); };
}

TEST(Errors, NameTheBlockThatDoesNotFitTheSamples) {
  const ConvnetOptions convnet{.blocks = {{.channels = 4}}};
  const ConvBlockOptions pooled{.channels = 4, .max_pool = 4};
  EXPECT_THAT(making(ConvnetOptions{.blocks = {pooled, pooled}}, {8, 8, 1}),
              ThrowsMessage<UsageError>(AllOf(HasSubstr("model.convnet.block[1]"), HasSubstr("[1, 2, 2, 4]"))));
  EXPECT_THAT(making(ConvnetOptions{.blocks = {{.channels = 4, .kernel = 4}}}, {8, 8, 1}),
              ThrowsMessage<UsageError>(HasSubstr("model.convnet.block[0].kernel: must be odd, is 4")));
  EXPECT_THAT(making(convnet, {0, 8, 1}), ::testing::Throws<UsageError>());
  EXPECT_THAT(making(ResnetOptions{.depth = 20}, {8, 8, 1}),
              ThrowsMessage<UsageError>(HasSubstr("model.resnet.depth: must be one of 18, 34, 50, 101, 152, is 20")));
}

/// The option that build() names as the one without a meaning.
std::string refused_option(const ModelOptions& options) {
  try {
    make(options, {8, 8, 1});
  } catch (const FieldError& error) {
    return error.path();
  }
  return "none";
}

TEST(Options, WithoutAMeaningAreNamed) {
  EXPECT_EQ(refused_option(MlpOptions{}), "none");
  EXPECT_EQ(refused_option(MlpOptions{.hidden = {4, 0}}), "model.mlp.hidden[1]");
  EXPECT_EQ(refused_option(MlpOptions{.dropout = 1}), "model.mlp.dropout");
  EXPECT_EQ(refused_option(MlpOptions{.dropout = -0.1}), "model.mlp.dropout");
  EXPECT_EQ(refused_option(MlpOptions{.outputs = 0}), "model.mlp.outputs");
  EXPECT_EQ(refused_option(MlpOptions{.outputs = 9}), "model.mlp.outputs") << "the data has 10 classes";

  EXPECT_EQ(refused_option(ConvnetOptions{}), "model.convnet.block");
  const auto block = [](const ConvBlockOptions& one) { return refused_option(ConvnetOptions{.blocks = {one}}); };
  EXPECT_EQ(block({.channels = 2}), "none");
  EXPECT_EQ(block({}), "model.convnet.block[0].channels");
  EXPECT_EQ(block({.channels = 2, .kernel = 4}), "model.convnet.block[0].kernel");
  EXPECT_EQ(block({.channels = 2, .kernel = -1}), "model.convnet.block[0].kernel");
  EXPECT_EQ(block({.channels = 2, .stride = 0}), "model.convnet.block[0].stride");
  EXPECT_EQ(block({.channels = 2, .max_pool = -1}), "model.convnet.block[0].max_pool");
  EXPECT_EQ(block({.channels = 2, .dropout = 1}), "model.convnet.block[0].dropout");
  EXPECT_EQ(refused_option(ConvnetOptions{.blocks = {{.channels = 2}}, .dropout = 1}), "model.convnet.dropout");
  EXPECT_EQ(refused_option(ConvnetOptions{.blocks = {{.channels = 2}}, .hidden = {0}}), "model.convnet.hidden[0]");

  EXPECT_EQ(refused_option(ResnetOptions{}), "model.resnet.depth");
  EXPECT_EQ(refused_option(ResnetOptions{.depth = 18, .width = 0}), "model.resnet.width");
}

TEST(Models, HaveTheirPublishedSizes) {
  const ModelInput input{.sample_shape = {224, 224, 3}, .outputs = 1000, .classes = 1000};
  for (const examples::ModelExample& example : examples::every_model()) {
    for (const examples::PublishedModel& published : example.published) {
      EXPECT_EQ(parameters_of(*outline(published.options, input)), published.parameters) << name_of(published.options);
    }
  }
}

TEST(Models, RefuseSamplesThatTheyDoNotFit) {
  for (const examples::ModelExample& example : examples::every_model()) {
    for (const Shape& shape : example.unfit) {
      ModelInput input = example.input;
      input.sample_shape = shape;
      EXPECT_THAT([&] { outline(example.options, input); },
                  ThrowsMessage<FieldError>(AllOf(HasSubstr("model."), HasSubstr(shape.str()))))
          << example.name;
    }
  }
}

TEST(Models, HaveNames) {
  EXPECT_EQ(name_of(MlpOptions{}), "mlp");
  EXPECT_EQ(name_of(ConvnetOptions{}), "convnet");
  EXPECT_EQ(name_of(ResnetOptions{.depth = 50}), "resnet50");
}

TEST(Dropouts, OfAModelHaveMasksOfTheirOwn) {
  const auto model = make(MlpOptions{.hidden = {16, 16}, .dropout = 0.5}, {4});
  const nn::StepContext context(1, 2, 0);
  const Tensor ones = Tensor::from(std::vector<float>(16 * 4, 1.0f), {4, 16});
  std::vector<std::vector<double>> masks;
  model->for_each([&](const std::string& path, nn::Module& module) {
    if (path.ends_with("dropout")) masks.push_back(values_of(module.forward(ones)));
  });
  ASSERT_EQ(masks.size(), 2u);
  EXPECT_NE(masks[0], masks[1]);
}

TEST(BatchNormOfAModel, TakesItsMomentumAndEpsilon) {
  // Running means begin at 0: a step moves each by the momentum times the batch's mean.
  const auto means = [](double momentum) {
    std::vector<double> all;
    const std::vector<ModelOptions> models = {
        MlpOptions{.hidden = {3}, .batch_norm = true, .batch_norm_momentum = momentum},
        ConvnetOptions{.blocks = {{.channels = 3}}, .batch_norm_momentum = momentum},
        ResnetOptions{.depth = 18, .stem = ResnetStem::kCifar, .width = 2, .batch_norm_momentum = momentum}};
    for (const ModelOptions& options : models) {
      const auto model = make(options, {8, 8, 1});
      model->forward(random_tensor({4, 8, 8, 1}, DType::kFloat32, 1));
      model->commit_statistics();
      for (const auto& [name, statistics] : model->statistics()) {
        for (const double mean : values_of(statistics->committed().rows(0, 1))) all.push_back(mean);
      }
    }
    return all;
  };
  const std::vector<double> slow = means(0.1), fast = means(0.5);
  ASSERT_FALSE(slow.empty());
  for (std::size_t i = 0; i < slow.size(); ++i) EXPECT_NEAR(fast[i], 5 * slow[i], 1e-6) << i;

  const auto output = [](double epsilon) {
    const auto model = make(MlpOptions{.hidden = {3}, .batch_norm = true, .batch_norm_epsilon = epsilon}, {4});
    return values_of(model->forward(random_tensor({4, 4}, DType::kFloat32, 1)));
  };
  EXPECT_EQ(output(1e-5), output(1e-5));
  EXPECT_NE(output(1e-5), output(0.5));
}

/// Its values come from its own seed, and are drawn once.
TEST(Build, TakesNoneOfTheProcessesRandomNumbers) {
  const auto next = [](const std::function<void()>& before) {
    nn::manual_seed(3);
    before();
    return values_of(nn::Linear(4, 4).parameters()[0].tensor);
  };
  const auto made = next([] {});
  EXPECT_NE(next([] { nn::Linear(4, 4); }), made);
  EXPECT_EQ(next([] { make(MlpOptions{.hidden = {3}, .dropout = 0.5, .batch_norm = true}, {4}); }), made);
}

}  // namespace
}  // namespace lockstep::model_zoo
