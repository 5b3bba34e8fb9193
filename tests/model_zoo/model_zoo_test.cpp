// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "model_zoo/build.h"
#include "model_zoo/resnet.h"
#include "runtime/autograd/grad_mode.h"
#include "runtime/nn/step_context.h"
#include "runtime/ops/ops.h"
#include "runtime/tensor/error.h"
#include "tests/runtime/kernels/kernel_fixture.h"
#include "tests/runtime/optim/resolved_job.h"

namespace lockstep::model_zoo {
namespace {

using kernels::testing::random_tensor;
using kernels::testing::values_of;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

job::Model model_of(const std::string& text) { return job::resolved("model { " + text + " }").model(); }

std::unique_ptr<nn::Module> make(const std::string& text, const Shape& sample, std::int64_t outputs = 10) {
  return build(model_of(text), {sample, outputs}, 1);
}

Shape batch_of(std::int64_t rows, const Shape& sample) {
  std::vector<std::int64_t> extents{rows};
  extents.insert(extents.end(), sample.extents().begin(), sample.extents().end());
  return Shape(std::span<const std::int64_t>(extents));
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

struct Fit {
  const char* name;
  const char* text;
  Shape sample;
  std::int64_t outputs;
};

void PrintTo(const Fit& fit, std::ostream* out) { *out << fit.name; }

class EveryModel : public ::testing::TestWithParam<Fit> {};

TEST_P(EveryModel, MapsABatchToItsOutputsAndReachesEveryParameter) {
  const Fit& fit = GetParam();
  const auto model = make(fit.text, fit.sample, fit.outputs);
  const Tensor y = model->forward(random_tensor(batch_of(3, fit.sample), DType::kFloat32, 1));
  EXPECT_EQ(y.shape(), (Shape{3, fit.outputs}));
  ops::sum(y).backward();
  for (const nn::Parameter& parameter : model->parameters()) {
    EXPECT_TRUE(parameter.tensor.grad().defined()) << parameter.name;
  }
}

TEST_P(EveryModel, TakesABatchWithoutSamples) {
  const Fit& fit = GetParam();
  const auto model = make(fit.text, fit.sample, fit.outputs);
  const Tensor y = model->forward(random_tensor(batch_of(0, fit.sample), DType::kFloat32, 1));
  EXPECT_EQ(y.shape(), (Shape{0, fit.outputs}));
  ops::sum(y).backward();
  for (const nn::Parameter& parameter : model->parameters()) {
    EXPECT_THAT(values_of(parameter.tensor.grad()), ::testing::Each(0)) << parameter.name;
  }
}

TEST_P(EveryModel, EvaluatesEachSampleByItself) {
  const Fit& fit = GetParam();
  const auto model = make(fit.text, fit.sample, fit.outputs);
  model->train(false);
  const autograd::NoGrad no_grad;
  const Tensor x = random_tensor(batch_of(3, fit.sample), DType::kFloat32, 1);
  const Tensor together = model->forward(x), alone = model->forward(x.rows(1, 2));
  kernels::testing::expect_close(alone, together.rows(1, 2), {.relative = 1e-4, .absolute = 1e-4});
}

TEST_P(EveryModel, StartsFromItsSeedAlone) {
  const Fit& fit = GetParam();
  const ModelInput input{fit.sample, fit.outputs};
  const auto one = build(model_of(fit.text), input, 1), same = build(model_of(fit.text), input, 1),
             other = build(model_of(fit.text), input, 2);
  const auto first = [](const nn::Module& model) { return values_of(model.parameters()[0].tensor); };
  EXPECT_EQ(first(*one), first(*same));
  EXPECT_NE(first(*one), first(*other));
}

INSTANTIATE_TEST_SUITE_P(
    Models, EveryModel,
    ::testing::Values(
        Fit{"mlp", "mlp { hidden: [8, 6] }", {5}, 3}, Fit{"mlp_linear", "mlp {}", {4, 3}, 2},
        Fit{"mlp_gelu_tanh", "mlp { hidden: 8 hidden: 7 activation: GELU_TANH }", {3, 2, 2}, 4},
        Fit{"mlp_full", "mlp { hidden: 8 activation: GELU batch_norm: true dropout: 0.2 }", {3, 2, 2}, 4},
        Fit{"convnet",
            "convnet { block { channels: 4 max_pool: 2 } block { channels: 6 stride: 2 dropout: 0.1 } hidden: 9 "
            "dropout: 0.2 }",
            {8, 8, 1},
            10},
        Fit{"convnet_global",
            "convnet { block { channels: 4 kernel: 5 batch_norm: false activation: GELU } head_pool: GLOBAL_AVERAGE }",
            {7, 5, 2},
            3},
        Fit{"resnet_basic", "resnet { depth: 18 stem: CIFAR width: 4 }", {16, 16, 3}, 10},
        Fit{"resnet_bottleneck", "resnet { depth: 50 width: 4 }", {32, 32, 3}, 5},
        Fit{"resnet_one_pixel", "resnet { depth: 18 width: 2 }", {1, 1, 1}, 2}),
    [](const auto& instance) { return instance.param.name; });

TEST(Mlp, NamesItsLayersAndHasNoBiasBeforeABatchNorm) {
  EXPECT_THAT(names_of(*make("mlp { hidden: [8] }", {5})),
              ElementsAre("hidden0_linear.weight", "hidden0_linear.bias", "output.weight", "output.bias"));
  EXPECT_THAT(
      names_of(*make("mlp { hidden: [8] batch_norm: true }", {5})),
      ElementsAre("hidden0_linear.weight", "hidden0_norm.weight", "hidden0_norm.bias", "output.weight", "output.bias"));
  EXPECT_EQ(parameters_of(*make("mlp { hidden: [8] outputs: 17 }", {5})), 5 * 8 + 8 + 8 * 17 + 17);
}

TEST(Convnet, NamesItsLayers) {
  const auto model = make(
      "convnet { block { channels: 4 max_pool: 2 } block { channels: 6 batch_norm: false } hidden: 9 }", {8, 8, 1});
  EXPECT_THAT(names_of(*model), ElementsAre("block0_conv.weight", "block0_norm.weight", "block0_norm.bias",
                                            "block1_conv.weight", "block1_conv.bias", "hidden0.weight", "hidden0.bias",
                                            "classifier.weight", "classifier.bias"));
  EXPECT_EQ(parameters_of(*model), 9 * 4 + 2 * 4 + 9 * 4 * 6 + 6 + (4 * 4 * 6 * 9 + 9) + (9 * 10 + 10));
}

TEST(Convnet, FusesReluButNotGeluIntoTheBatchNorm) {
  const auto children = [](const char* text) {
    std::vector<std::string> names;
    make(text, {4, 4, 1})->for_each([&](const std::string& path, nn::Module&) { names.push_back(path); });
    return names;
  };
  EXPECT_THAT(children("convnet { block { channels: 2 } }"),
              ElementsAre("", "block0_conv", "block0_norm", "flatten", "classifier"));
  EXPECT_THAT(children("convnet { block { channels: 2 activation: GELU } }"),
              ElementsAre("", "block0_conv", "block0_norm", "block0_activation", "flatten", "classifier"));
}

TEST(Mlp, MakesAHiddenLayerOneOperationUnlessABatchNormComesBetween) {
  const auto children = [](const char* text) {
    std::vector<std::string> names;
    make(text, {4})->for_each([&](const std::string& path, nn::Module&) { names.push_back(path); });
    return names;
  };
  EXPECT_THAT(children("mlp { hidden: 3 activation: GELU_TANH }"),
              ElementsAre("", "flatten", "hidden0_linear", "output"));
  EXPECT_THAT(children("mlp { hidden: 3 batch_norm: true activation: GELU }"),
              ElementsAre("", "flatten", "hidden0_linear", "hidden0_norm", "hidden0_activation", "output"));
}

/// Uninitialised, which is quicker.
std::unique_ptr<nn::Module> resnet(const std::string& fields, std::int64_t classes) {
  return make_resnet(model_of("resnet { " + fields + " }").resnet(), {{32, 32, 3}, classes});
}

TEST(Resnet, HasTorchvisionsParameterCounts) {
  EXPECT_EQ(parameters_of(*resnet("depth: 18", 1000)), 11'689'512);
  EXPECT_EQ(parameters_of(*resnet("depth: 34", 1000)), 21'797'672);
  EXPECT_EQ(parameters_of(*resnet("depth: 50", 1000)), 25'557'032);
  EXPECT_EQ(parameters_of(*resnet("depth: 101", 1000)), 44'549'160);
  EXPECT_EQ(parameters_of(*resnet("depth: 152", 1000)), 60'192'808);
  EXPECT_EQ(parameters_of(*resnet("depth: 18 stem: CIFAR", 10)), 11'173'962) << "3x3 stem, ten classes";
}

TEST(Resnet, HasTorchvisionsNumberOfTensors) {
  const auto count = [](const char* fields) { return resnet(fields, 10)->parameters().size(); };
  EXPECT_EQ(count("depth: 18 width: 4"), 62u);
  EXPECT_EQ(count("depth: 34 width: 4"), 110u);
  EXPECT_EQ(count("depth: 50 width: 4"), 161u);
  EXPECT_EQ(resnet("depth: 18 width: 4", 10)->statistics().size(), 20u);
  EXPECT_EQ(resnet("depth: 50 width: 4", 10)->statistics().size(), 53u);
}

TEST(Resnet, NamesItsLayers) {
  const std::vector<std::string> names = names_of(*resnet("depth: 18 width: 4", 10));
  EXPECT_THAT(names, ::testing::IsSupersetOf({"stem_conv.weight", "stem_norm.bias", "stage0_block0.conv0.weight",
                                              "stage1_block0.shortcut_conv.weight", "stage3_block1.norm1.weight",
                                              "classifier.bias"}));
  EXPECT_THAT(names, ::testing::Not(::testing::Contains("stage0_block0.shortcut_conv.weight")));
}

TEST(Resnet, ZeroInitStartsEveryBlockAsItsShortcut) {
  const auto model = resnet("depth: 18 width: 4 stem: CIFAR zero_init_residual: true", 10);
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
  const auto extents = [](const std::string& fields) {
    const auto model = resnet("depth: 18 width: 2 " + fields, 10);
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
  EXPECT_THAT(extents("stem: CIFAR"), ElementsAre(64, 32, 16, 8));
  EXPECT_THAT(extents("stem: IMAGENET"), ElementsAre(16, 8, 4, 2));
}

TEST(Errors, NameTheBlockThatDoesNotFitTheSamples) {
  EXPECT_THAT([] { make("convnet { block { channels: 4 } }", {64}); },
              ThrowsMessage<UsageError>(AllOf(HasSubstr("model.convnet"), HasSubstr("[64]"))));
  EXPECT_THAT(
      [] {
        make("resnet { depth: 18 }", {8, 8});
      },
      ThrowsMessage<UsageError>(AllOf(HasSubstr("model.resnet"), HasSubstr("[8, 8]"))));
  EXPECT_THAT(
      [] {
        make("convnet { block { channels: 4 max_pool: 4 } block { channels: 4 max_pool: 4 } }", {8, 8, 1});
      },
      ThrowsMessage<UsageError>(AllOf(HasSubstr("model.convnet.block[1]"), HasSubstr("[1, 2, 2, 4]"))));
  EXPECT_THAT([] { make("convnet { block { channels: 4 kernel: 4 } }", {0, 8, 1}); }, ::testing::Throws<UsageError>());
  EXPECT_THAT(
      [] {
        make("resnet { depth: 20 }", {8, 8, 1});
      },
      ThrowsMessage<UsageError>(HasSubstr("20 is none of 18, 34, 50, 101, 152")));
  EXPECT_THAT([] { make("", {8}); }, ThrowsMessage<UsageError>(HasSubstr("none is named")));
}

TEST(Dropouts, OfAModelHaveMasksOfTheirOwn) {
  const auto model = make("mlp { hidden: [16, 16] dropout: 0.5 }", {4});
  const nn::StepContext context(1, 2, 0);
  const Tensor ones = Tensor::from(std::vector<float>(16 * 4, 1.0f), {4, 16});
  std::vector<std::vector<double>> masks;
  model->for_each([&](const std::string& path, nn::Module& module) {
    if (path.ends_with("dropout")) masks.push_back(values_of(module.forward(ones)));
  });
  ASSERT_EQ(masks.size(), 2u);
  EXPECT_NE(masks[0], masks[1]);
}

}  // namespace
}  // namespace lockstep::model_zoo
