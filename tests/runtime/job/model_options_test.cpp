// SPDX-License-Identifier: Apache-2.0
#include "runtime/job/model_options.h"

#include <gmock/gmock.h>

#include "runtime/job/defaults.h"
#include "tests/runtime/job/sample_job.h"

namespace lockstep::job {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// The options of a job that says nothing but this of its model, as resolved.
template <class Options>
Options resolved(void (*name_kind)(Model&)) {
  Job job;
  name_kind(*job.mutable_model());
  fill_defaults(job, "test.pbtxt", ".");
  return std::get<Options>(model_options(job.model()));
}

TEST(ModelOptions, OfAResolvedDefaultJobAreTheStructsDefaults) {
  EXPECT_EQ(resolved<model_zoo::MlpOptions>([](Model& model) { model.mutable_mlp(); }), model_zoo::MlpOptions());
  EXPECT_EQ(resolved<model_zoo::ConvnetOptions>([](Model& model) { model.mutable_convnet(); }),
            model_zoo::ConvnetOptions());
  EXPECT_EQ(resolved<model_zoo::ResnetOptions>([](Model& model) { model.mutable_resnet(); }),
            model_zoo::ResnetOptions());
  EXPECT_EQ(resolved<model_zoo::GptOptions>([](Model& model) { model.mutable_gpt(); }), model_zoo::GptOptions());
  EXPECT_EQ(resolved<model_zoo::LlamaOptions>([](Model& model) { model.mutable_llama(); }), model_zoo::LlamaOptions());
  EXPECT_EQ(resolved<model_zoo::Unet3dOptions>([](Model& model) { model.mutable_unet3d(); }),
            model_zoo::Unet3dOptions());
  EXPECT_EQ(resolved<model_zoo::VitOptions>([](Model& model) { model.mutable_vit(); }), model_zoo::VitOptions());
  EXPECT_EQ(resolved<model_zoo::BertOptions>([](Model& model) { model.mutable_bert(); }), model_zoo::BertOptions());
  const auto block =
      resolved<model_zoo::ConvnetOptions>([](Model& model) { model.mutable_convnet()->add_block(); }).blocks.at(0);
  const model_zoo::ConvBlockOptions defaults;
  EXPECT_EQ(block.channels, defaults.channels);
  EXPECT_EQ(block.kernel, defaults.kernel);
  EXPECT_EQ(block.stride, defaults.stride);
  EXPECT_EQ(block.batch_norm, defaults.batch_norm);
  EXPECT_EQ(block.activation, defaults.activation);
  EXPECT_EQ(block.max_pool, defaults.max_pool);
  EXPECT_EQ(block.dropout, defaults.dropout);
  EXPECT_EQ(block, defaults);
}

model_zoo::ModelOptions options_of(const std::string& model) {
  return model_options(sample({"model={ " + model + " }"}).model());
}

TEST(ModelOptions, TakeEveryFieldOfTheJob) {
  const model_zoo::MlpOptions mlp{.hidden = {3, 4},
                                  .activation = kernels::Activation::kGelu,
                                  .dropout = 0.5,
                                  .outputs = 6,
                                  .batch_norm = true,
                                  .batch_norm_momentum = 0.2,
                                  .batch_norm_epsilon = 0.5};
  EXPECT_EQ(options_of("mlp { hidden: [3, 4] activation: GELU dropout: 0.5 outputs: 6 batch_norm: true "
                       "batch_norm_momentum: 0.2 batch_norm_epsilon: 0.5 }"),
            model_zoo::ModelOptions(mlp));
  const model_zoo::ConvnetOptions convnet{.blocks = {{.channels = 2,
                                                      .kernel = 5,
                                                      .stride = 2,
                                                      .batch_norm = false,
                                                      .activation = kernels::Activation::kGeluTanh,
                                                      .max_pool = 3,
                                                      .dropout = 0.25},
                                                     {.channels = 7}},
                                          .dropout = 0.5,
                                          .hidden = {8},
                                          .head_pool = model_zoo::HeadPool::kGlobalAverage,
                                          .batch_norm_momentum = 0.2,
                                          .batch_norm_epsilon = 0.5};
  EXPECT_EQ(options_of("convnet { block { channels: 2 kernel: 5 stride: 2 batch_norm: false activation: GELU_TANH "
                       "max_pool: 3 dropout: 0.25 } block { channels: 7 } dropout: 0.5 hidden: 8 "
                       "head_pool: GLOBAL_AVERAGE batch_norm_momentum: 0.2 batch_norm_epsilon: 0.5 }"),
            model_zoo::ModelOptions(convnet));
  const model_zoo::ResnetOptions resnet{.depth = 34,
                                        .stem = model_zoo::ResnetStem::kCifar,
                                        .width = 8,
                                        .zero_init_residual = true,
                                        .batch_norm_momentum = 0.2,
                                        .batch_norm_epsilon = 0.5};
  EXPECT_EQ(options_of("resnet { depth: 34 stem: CIFAR width: 8 zero_init_residual: true batch_norm_momentum: 0.2 "
                       "batch_norm_epsilon: 0.5 }"),
            model_zoo::ModelOptions(resnet));
  const model_zoo::Unet3dOptions unet3d{.levels = 2,
                                        .channels = 6,
                                        .convolutions = 3,
                                        .up = model_zoo::Unet3dUp::kTrilinear,
                                        .norm = model_zoo::Unet3dNorm::kGroup,
                                        .groups = 3,
                                        .activation = kernels::Activation::kGelu,
                                        .batch_norm_momentum = 0.2,
                                        .batch_norm_epsilon = 0.5};
  EXPECT_EQ(options_of("unet3d { levels: 2 channels: 6 convolutions: 3 up: TRILINEAR norm: GROUP groups: 3 "
                       "activation: GELU batch_norm_momentum: 0.2 batch_norm_epsilon: 0.5 }"),
            model_zoo::ModelOptions(unet3d));
  const model_zoo::VitOptions vit{.patch = 4,
                                  .layers = 2,
                                  .heads = 3,
                                  .width = 6,
                                  .hidden = 5,
                                  .dropout = 0.25,
                                  .attention_dropout = 0.5,
                                  .norm_epsilon = 0.125,
                                  .checkpoint_activations = true};
  EXPECT_EQ(options_of("vit { patch: 4 layers: 2 heads: 3 width: 6 hidden: 5 dropout: 0.25 attention_dropout: 0.5 "
                       "norm_epsilon: 0.125 checkpoint_activations: true }"),
            model_zoo::ModelOptions(vit));
}

TEST(ModelOptions, TakeEveryFieldOfALanguageModel) {
  const model_zoo::GptOptions gpt{.layers = 2,
                                  .heads = 3,
                                  .width = 6,
                                  .hidden = 5,
                                  .context = 7,
                                  .vocabulary = 11,
                                  .dropout = 0.25,
                                  .bias = false,
                                  .tied_head = false,
                                  .norm_epsilon = 0.5,
                                  .initial_deviation = 0.1,
                                  .checkpoint_activations = true};
  EXPECT_EQ(
      options_of("gpt { layers: 2 heads: 3 width: 6 hidden: 5 context: 7 vocabulary: 11 dropout: 0.25 bias: false "
                 "tied_head: false norm_epsilon: 0.5 initial_deviation: 0.1 checkpoint_activations: true }"),
      model_zoo::ModelOptions(gpt));
  const model_zoo::LlamaOptions llama{.layers = 2,
                                      .heads = 4,
                                      .kv_heads = 2,
                                      .width = 8,
                                      .hidden = 5,
                                      .context = 7,
                                      .vocabulary = 11,
                                      .rope_theta = 500,
                                      .attention_bias = true,
                                      .tied_head = true,
                                      .norm_epsilon = 0.5,
                                      .initial_deviation = 0.1,
                                      .checkpoint_activations = true};
  EXPECT_EQ(options_of("llama { layers: 2 heads: 4 kv_heads: 2 width: 8 hidden: 5 context: 7 vocabulary: 11 "
                       "rope_theta: 500 attention_bias: true tied_head: true norm_epsilon: 0.5 initial_deviation: 0.1 "
                       "checkpoint_activations: true }"),
            model_zoo::ModelOptions(llama));
  const model_zoo::BertOptions bert{.layers = 2,
                                    .heads = 3,
                                    .width = 6,
                                    .hidden = 5,
                                    .context = 7,
                                    .vocabulary = 11,
                                    .dropout = 0.25,
                                    .norm_epsilon = 0.5,
                                    .initial_deviation = 0.1,
                                    .pad_token = 0,
                                    .checkpoint_activations = true};
  EXPECT_EQ(options_of("bert { layers: 2 heads: 3 width: 6 hidden: 5 context: 7 vocabulary: 11 dropout: 0.25 "
                       "norm_epsilon: 0.5 initial_deviation: 0.1 pad_token: 0 checkpoint_activations: true }"),
            model_zoo::ModelOptions(bert));
}

TEST(ModelOptions, NeedANamedModel) {
  EXPECT_THAT([] { model_options(Model()); }, ThrowsMessage<FieldError>(HasSubstr("model: none is named")));
}

TEST(ModelKind, IsTheFieldThatNamesIt) {
  Model model;
  EXPECT_EQ(model_kind(model), "unknown");
  model.mutable_convnet();
  EXPECT_EQ(model_kind(model), "convnet");
}

/// What the reader refuses with a line, the options refuse too, for whoever gives them without a job, and name the same
/// field.
TEST(ModelOptions, RefuseWhatTheJobsReaderRefuses) {
  for (const std::string field : {"model.mlp.hidden=[4, 0]",
                                  "model.mlp.dropout=1",
                                  "model.mlp.dropout=nan",
                                  "model.mlp.outputs=0",
                                  "model={ convnet { } }",
                                  "model={ convnet { block { } } }",
                                  "model={ convnet { block { channels: 8 kernel: 4 } } }",
                                  "model={ convnet { block { channels: 8 stride: 0 } } }",
                                  "model={ convnet { block { channels: 8 dropout: 2 } } }",
                                  "model={ convnet { block { channels: 8 } dropout: 1 } }",
                                  "model={ convnet { block { channels: 8 } hidden: 0 } }",
                                  "model={ resnet { } }",
                                  "model.resnet.depth=20",
                                  "model={ resnet { depth: 18 width: 0 } }",
                                  "model.mlp.batch_norm_momentum=1.5",
                                  "model.mlp.batch_norm_epsilon=0",
                                  "model={ convnet { block { channels: 8 } batch_norm_epsilon: -1 } }",
                                  "model={ resnet { depth: 18 batch_norm_momentum: -0.1 } }",
                                  "model={ gpt { layers: 0 } }",
                                  "model={ gpt { width: 10 heads: 4 } }",
                                  "model={ gpt { dropout: 1 } }",
                                  "model={ gpt { hidden: 0 } }",
                                  "model={ gpt { context: 0 } }",
                                  "model={ gpt { vocabulary: 0 } }",
                                  "model={ gpt { norm_epsilon: 0 } }",
                                  "model={ gpt { initial_deviation: -1 } }",
                                  "model={ llama { kv_heads: 5 } }",
                                  "model={ llama { kv_heads: 0 } }",
                                  "model={ llama { width: 24 heads: 8 } }",
                                  "model={ llama { rope_theta: 0 } }",
                                  "model={ unet3d { levels: 0 } }",
                                  "model={ unet3d { channels: 0 } }",
                                  "model={ unet3d { convolutions: 0 } }",
                                  "model={ unet3d { norm: GROUP groups: 5 } }",
                                  "model={ unet3d { batch_norm_epsilon: 0 } }"}) {
    const Checked checked = check_text(kSample, "job.pbtxt", std::vector<std::string>{field}, "/data");
    ASSERT_EQ(checked.diagnostics.size(), 1u) << field;
    try {
      model_zoo::outline(model_options(checked.job.model()), {{8, 8, 1}, 10});
      ADD_FAILURE() << field << " was accepted";
    } catch (const FieldError& error) {
      EXPECT_EQ(error.path(), checked.diagnostics[0].path) << field;
    }
  }
}

}  // namespace
}  // namespace lockstep::job
