// SPDX-License-Identifier: Apache-2.0
// config.json of transformers: beside a job's model, as a job's model, and of a model.
#include "model_zoo/hub_config.h"

#include <gmock/gmock.h>

#include "model_zoo/hub_export.h"
#include "model_zoo/hub_model.h"
#include "runtime/base/error.h"
#include "runtime/base/files/whole_file.h"
#include "tests/support/folder.h"

namespace lockstep::model_zoo {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::ThrowsMessage;

/// Llama 3.1's rope_scaling, as transformers 4 has it beside rope_theta.
const Json kLlama3{{"rope_type", "llama3"},
                   {"factor", 8.0},
                   {"low_freq_factor", 1.0},
                   {"high_freq_factor", 4.0},
                   {"original_max_position_embeddings", 8192}};

const LlamaOptions kHubLlama{.layers = 2, .heads = 4, .kv_heads = 2, .width = 64, .context = 512, .norm_epsilon = 1e-6};

class HubConfigs : public ::testing::Test {
 protected:
  /// A config.json with `changes`; null takes a setting away.
  HubConfig config_of(Json settings, const Json& changes = Json::object()) {
    for (const auto& [name, value] : changes.items()) settings[name] = value;
    EXPECT_FALSE(write_whole_file(folder_.path() / "config.json", settings.dump()));
    return HubConfig(folder_.path() / "config.json");
  }
  HubConfig llama(const Json& changes = Json::object()) {
    return config_of(
        {{"model_type", "llama"}, {"num_attention_heads", 4}, {"num_key_value_heads", 2}, {"hidden_size", 64}},
        changes);
  }
  std::vector<std::string> wrong(const HubConfig& config, const ModelOptions& options, bool whole = true) {
    return differences_of(config, options, whole).wrong;
  }

  Folder folder_;
};

TEST_F(HubConfigs, WhatIsAbsentHasTheDefaultOfTransformers) {
  EXPECT_THAT(wrong(llama(), kHubLlama), IsEmpty());
  LlamaOptions other = kHubLlama;
  other.norm_epsilon = 1e-5;  // transformers' own is 1e-6
  EXPECT_THAT(wrong(llama(), other), ElementsAre("rms_norm_eps is 1e-06, the job's norm_epsilon is 1e-05"));
  // Mistral's own number of keys and values is 8.
  EXPECT_THAT(wrong(config_of({{"model_type", "mistral"}, {"num_attention_heads", 4}, {"hidden_size", 64}}), kHubLlama),
              ElementsAre("num_key_value_heads is 8, the job's kv_heads is 2"));
}

TEST_F(HubConfigs, EverySettingThatChangesNumbersIsCompared) {
  const std::vector<std::pair<Json, std::string>> cases{
      {{{"num_attention_heads", 8}}, "num_attention_heads is 8, the job's heads is 4"},
      {{{"num_key_value_heads", nullptr}}, "num_key_value_heads is 4, the job's kv_heads is 2"},
      {{{"rope_theta", 5e5}}, "rope_theta is 500000.0, the job's rope_theta is 10000.0"},
      {{{"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 5e5}}}},
       "rope_theta is 500000.0, the job's rope_theta is 10000.0"},
      {{{"rope_scaling", kLlama3}}, "rope_scaling is of type llama3, the job's rope_scaling of type default"},
      {{{"rope_scaling", {{"type", "yarn"}, {"factor", 4.0}}}},
       "rope_scaling is of type \"yarn\", which is not built: llama3 and linear are"},
      {{{"rope_parameters", {{"rope_type", "default"}, {"partial_rotary_factor", 0.5}}}},
       "rope_scaling.partial_rotary_factor is 0.5, the job's model has 1: channels without a position are not built"},
      {{{"rms_norm_eps", 1e-5}}, "rms_norm_eps is 1e-05, the job's norm_epsilon is 1e-06"},
      {{{"hidden_act", "gelu"}}, "hidden_act is \"gelu\", the job's model has silu or swish"},
      {{{"tie_word_embeddings", true}}, "tie_word_embeddings is true, the job's tied_head is false"},
      {{{"attention_bias", true}}, "attention_bias is true, the job's attention_bias is false"},
      {{{"mlp_bias", true}},
       "mlp_bias is true, the job's model has false: feed-forward layers with a bias are not built"},
      {{{"head_dim", 32}}, "head_dim is 32, the job's head_width is 16"},
      {{{"quantization_config", {{"bits", 4}}}},
       "quantization_config is there: take the weights that are not quantized"},
      {{{"model_type", "qwen2"}}, "model_type is \"qwen2\", the job's model is llama"}};
  for (const auto& [changes, expected] : cases) {
    EXPECT_THAT(wrong(llama(changes), kHubLlama), ElementsAre(expected)) << changes;
  }
  EXPECT_THAT(wrong(llama({{"sliding_window", 256}}), kHubLlama),
              ElementsAre(HasSubstr("sliding_window is 256, less than")));
  for (const Json& fine :
       std::vector<Json>{{{"sliding_window", 512}}, {{"head_dim", 16}}, {{"max_position_embeddings", 9}}}) {
    EXPECT_THAT(wrong(llama(fine), kHubLlama), IsEmpty()) << fine;
  }
}

TEST_F(HubConfigs, TheOtherFamiliesAreCompared) {
  const GptOptions gpt{.dropout = 0.1};
  const std::vector<std::pair<Json, std::string>> of_gpt{
      {{{"n_head", 8}}, "n_head is 8, the job's heads is 12"},
      {{{"activation_function", "relu"}}, "activation_function is \"relu\", the job's model has gelu_new"},
      {{{"scale_attn_by_inverse_layer_idx", true}}, "a scale by the layer is not built"},
      {{{"scale_attn_weights", false}}, "attention without a scale is not built"},
      {{{"tie_word_embeddings", false}}, "tie_word_embeddings is false, the job's tied_head is true"},
      {{{"layer_norm_epsilon", 1e-6}}, "layer_norm_epsilon is 1e-06, the job's norm_epsilon is 1e-05"}};
  for (const auto& [changes, expected] : of_gpt) {
    EXPECT_THAT(wrong(config_of({{"model_type", "gpt2"}}, changes), gpt), ElementsAre(HasSubstr(expected)));
  }
  const std::vector<std::pair<Json, std::string>> of_bert{
      {{{"hidden_act", "gelu_new"}}, "hidden_act is \"gelu_new\", the job's model has gelu or gelu_python"},
      {{{"position_embedding_type", "relative_key"}}, "position_embedding_type is \"relative_key\""},
      {{{"is_decoder", true}}, "bert sees the whole text"},
      {{{"type_vocab_size", 1}}, "other numbers of token types are not built"},
      {{{"layer_norm_eps", 1e-5}}, "layer_norm_eps is 1e-05, the job's norm_epsilon is 1e-12"}};
  for (const auto& [changes, expected] : of_bert) {
    EXPECT_THAT(wrong(config_of({{"model_type", "bert"}}, changes), BertOptions()), ElementsAre(HasSubstr(expected)));
  }
  EXPECT_THAT(wrong(config_of({{"model_type", "bert"}}), BertOptions{.pad_token = 1}),
              ElementsAre("pad_token_id is 0, the job's pad_token is 1"));
  EXPECT_THAT(wrong(config_of({{"model_type", "vit"}, {"qkv_bias", false}}), VitOptions{.norm_epsilon = 1e-12}),
              ElementsAre(HasSubstr("attention without biases is not built")));
  EXPECT_THAT(wrong(config_of({{"model_type", "vit"}}), VitOptions()),
              ElementsAre("layer_norm_eps is 1e-12, the job's norm_epsilon is 1e-06"));
  EXPECT_THAT(wrong(config_of({{"model_type", "resnet"}}), ResnetOptions()), IsEmpty());
}

TEST_F(HubConfigs, DropoutIsSaidAndTyingTellsOfWholeModelsAlone) {
  const HubDifferences found = differences_of(config_of({{"model_type", "gpt2"}}), GptOptions(), true);
  EXPECT_THAT(found.wrong, IsEmpty());
  EXPECT_THAT(found.said, ElementsAre("resid_pdrop is 0.1, the job's dropout is 0.0"));
  EXPECT_THAT(wrong(llama({{"tie_word_embeddings", true}}), kHubLlama, /*whole=*/false), IsEmpty());
}

TEST_F(HubConfigs, ScalingsOfRotaryPositionsAreComparedNumberByNumber) {
  LlamaOptions scaled = kHubLlama;
  scaled.rope_scaling.emplace();
  EXPECT_THAT(wrong(llama({{"rope_scaling", kLlama3}}), scaled), IsEmpty());
  EXPECT_THAT(wrong(llama(), scaled),
              ElementsAre("rope_scaling is of type default, the job's rope_scaling of type llama3"));
  scaled.rope_scaling->factor = 32;
  EXPECT_THAT(wrong(llama({{"rope_scaling", kLlama3}}), scaled),
              ElementsAre("rope_scaling.factor is 8.0, the job's rope_scaling.factor is 32.0"));
  scaled.rope_scaling = {.kind = ops::RotaryScalingKind::kLinear, .factor = 2};
  EXPECT_THAT(wrong(llama({{"rope_scaling", {{"type", "linear"}, {"factor", 2.0}}}}), scaled), IsEmpty());
  EXPECT_THAT(
      [&] {
        llama({{"rope_scaling", {{"rope_type", "llama3"}, {"factor", 2.0}}}});
      },
      ThrowsMessage<UsageError>(HasSubstr("has no number \"low_freq_factor\"")));
}

TEST_F(HubConfigs, BecomeAModelOfAJob) {
  llama({{"rope_scaling", kLlama3}, {"max_position_embeddings", 131072}, {"sliding_window", nullptr}});
  const HubModel model = read_hub_model(folder_.path());
  EXPECT_EQ(model.kind, "llama");
  EXPECT_EQ(model.context, 8192);
  EXPECT_THAT(model.text, AllOf(HasSubstr("  kv_heads: 2"), HasSubstr("# num_key_value_heads: of keys and values"),
                                HasSubstr("  rope_scaling {\n    type: ROPE_LLAMA3 "), HasSubstr("    factor: 8.0"),
                                HasSubstr("original_context: 8192"), HasSubstr("norm_epsilon: 1e-06")));
  EXPECT_THAT(model.notes, ElementsAre(HasSubstr("8192 of the 131072 tokens")));
  EXPECT_THAT(model.text, Not(HasSubstr("head_width")));
  llama({{"head_dim", 32}});
  EXPECT_THAT(read_hub_model(folder_.path()).text, HasSubstr("head_width: 32"));
  config_of({{"model_type", "mistral"}});
  EXPECT_EQ(read_hub_model(folder_.path()).context, 4096);  // the window of its attention
}

TEST_F(HubConfigs, OfModelsThatAreNotBuiltAreRefusedByName) {
  const auto read = [&] { read_hub_model(folder_.path()); };
  EXPECT_THAT(read, ThrowsMessage<UsageError>(HasSubstr("holds no config.json")));
  config_of({{"model_type", "qwen3"}});
  EXPECT_THAT(read, ThrowsMessage<UsageError>(HasSubstr("\"qwen3\" are not built")));
  llama({{"mlp_bias", true}, {"rope_scaling", {{"rope_type", "dynamic"}, {"factor", 2.0}}}});
  EXPECT_THAT(read, ThrowsMessage<UsageError>(AllOf(HasSubstr("mlp_bias is true"), HasSubstr("of type \"dynamic\""))));
  llama({{"num_hidden_layers", "2 } fault {"}});
  EXPECT_THAT(read, ThrowsMessage<UsageError>(HasSubstr("num_hidden_layers is")));
  EXPECT_THAT([&] { config_of(Json::array()); }, ThrowsMessage<UsageError>(HasSubstr("no JSON object")));
}

/// A model of the zoo and its data.
struct HubCase {
  ModelOptions options;
  ModelInput input;
};

TEST_F(HubConfigs, OfAModelSayWhatItIs) {
  const ModelInput texts{.sample_shape = {6}, .outputs = 11, .vocabulary = 11, .target_shape = {6}, .classes = 11};
  const ModelInput labelled{.sample_shape = {6}, .outputs = 3, .vocabulary = 11, .classes = 3};
  const ModelInput images{.sample_shape = {8, 8, 3}, .outputs = 2, .classes = 2};
  LlamaOptions scaled{.layers = 1, .heads = 2, .width = 8, .context = 8};
  scaled.rope_scaling.emplace();
  LlamaOptions linear = scaled;
  linear.rope_scaling->kind = ops::RotaryScalingKind::kLinear;
  for (const auto& [options, input] : std::vector<HubCase>{
           {GptOptions{.layers = 1, .heads = 2, .width = 8, .context = 8, .dropout = 0.2}, texts},
           {LlamaOptions{.layers = 1, .heads = 4, .kv_heads = 2, .width = 8, .context = 8, .tied_head = true}, texts},
           {scaled, texts},
           {linear, texts},
           {LlamaOptions{.layers = 1, .heads = 3, .width = 8, .head_width = 4, .context = 8}, texts},
           {BertOptions{.layers = 1, .heads = 2, .width = 8, .context = 8, .pad_token = 2}, texts},
           {BertOptions{.layers = 1, .heads = 2, .width = 8, .context = 8}, labelled},
           {VitOptions{.patch = 4, .layers = 1, .heads = 2, .width = 8, .attention_dropout = 0.1}, images}}) {
    const auto model = build(options, input, 1);
    const std::string text = hub_config_text(options, *model, {.input = input, .class_names = {"cat", "dog"}});
    const HubDifferences found = differences_of(config_of(Json::parse(text)), options, true);
    EXPECT_THAT(found.wrong, IsEmpty()) << text;
    EXPECT_THAT(found.said, IsEmpty()) << text;
    EXPECT_NO_THROW(read_hub_model(folder_.path())) << text;
  }
  const auto vit = build(VitOptions{.patch = 4, .layers = 1, .heads = 2, .width = 8}, images, 1);
  EXPECT_THAT(
      hub_config_text(VitOptions{.patch = 4, .layers = 1, .heads = 2, .width = 8}, *vit,
                      {.input = images, .class_names = {"cat", "dog"}}),
      AllOf(HasSubstr("\"1\": \"dog\""), HasSubstr("\"image_size\": 8"), HasSubstr("\"intermediate_size\": 32")));
  EXPECT_THAT([&] { require_hub_model(ResnetOptions{.depth = 18}, images); },
              ThrowsMessage<UsageError>(HasSubstr("transformers has no model that is a resnet18")));
}

}  // namespace
}  // namespace lockstep::model_zoo
