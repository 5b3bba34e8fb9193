// SPDX-License-Identifier: Apache-2.0
#include "model_zoo/hub_settings.h"

namespace lockstep::model_zoo {

namespace {

constexpr std::string_view kOnlyFalse = "[false]";
constexpr std::string_view kOnlyTrue = "[true]";
constexpr std::string_view kOnlyNull = "[null]";
constexpr std::string_view kExactGelu = R"(["gelu", "gelu_python"])";

constexpr HubSetting kGpt2[] = {
    {"n_layer", "layers", Bearing::kSize, "blocks"},
    {"n_head", "heads", Bearing::kNumbers, "heads that share the width"},
    {"n_embd", "width", Bearing::kSize, "of what flows from block to block"},
    {"n_inner", "hidden", Bearing::kSize, "width of the feed-forward layers"},
    {"n_positions", "context", Bearing::kSize, "tokens of the longest text: positions are learned"},
    {"vocab_size", "vocabulary", Bearing::kSize, "tokens that the model knows"},
    {"resid_pdrop", "dropout", Bearing::kTraining, "while training: of embeddings, attention and what blocks add"},
    {"embd_pdrop", "dropout", Bearing::kTraining},
    {"attn_pdrop", "dropout", Bearing::kTraining},
    {"tie_word_embeddings", "tied_head", Bearing::kTie, "whether the head's weight is the embedding's"},
    {"layer_norm_epsilon", "norm_epsilon", Bearing::kNumbers, "added to the variance"},
    {"initializer_range", "initial_deviation", Bearing::kStart, "of weights that the folder does not hold"},
    {"activation_function", "", Bearing::kNumbers, "", R"(["gelu_new", "gelu_pytorch_tanh", "gelu_python_tanh"])"},
    {"scale_attn_weights", "", Bearing::kNumbers, "attention without a scale is not built", kOnlyTrue},
    {"scale_attn_by_inverse_layer_idx", "", Bearing::kNumbers, "a scale by the layer is not built", kOnlyFalse},
    {"add_cross_attention", "", Bearing::kNumbers, "attention to another text is not built", kOnlyFalse},
    {"quantization_config", "", Bearing::kNumbers, "take the weights that are not quantized", kOnlyNull},
};
constexpr std::string_view kGpt2Defaults = R"({"n_layer": 12, "n_head": 12, "n_embd": 768, "n_inner": null,
  "n_positions": 1024, "vocab_size": 50257, "resid_pdrop": 0.1, "embd_pdrop": 0.1, "attn_pdrop": 0.1,
  "tie_word_embeddings": true, "layer_norm_epsilon": 1e-5, "initializer_range": 0.02,
  "activation_function": "gelu_new", "scale_attn_weights": true, "scale_attn_by_inverse_layer_idx": false,
  "add_cross_attention": false})";

constexpr HubSetting kLlama[] = {
    {"num_hidden_layers", "layers", Bearing::kSize, "blocks"},
    {"num_attention_heads", "heads", Bearing::kNumbers, "of the queries, which share the width"},
    {"num_key_value_heads", "kv_heads", Bearing::kNumbers, "of keys and values"},
    {"hidden_size", "width", Bearing::kSize, "of what flows from block to block"},
    {"head_dim", "head_width", Bearing::kNumbers, "channels of a head"},
    {"intermediate_size", "hidden", Bearing::kSize, "width of the feed-forward layers"},
    {"max_position_embeddings", "context", Bearing::kSize, "tokens of the longest text"},
    {"vocab_size", "vocabulary", Bearing::kSize, "tokens that the model knows"},
    {"rope_theta", "rope_theta", Bearing::kNumbers, "base of the rotary positions' wavelengths"},
    {"rope_scaling.rope_type", "rope_scaling.type", Bearing::kNumbers, "which frequencies are slowed"},
    {"rope_scaling.factor", "rope_scaling.factor", Bearing::kNumbers, "divides them"},
    {"rope_scaling.low_freq_factor", "rope_scaling.low_freq_factor", Bearing::kNumbers, "below it all are slowed"},
    {"rope_scaling.high_freq_factor", "rope_scaling.high_freq_factor", Bearing::kNumbers, "above it none is"},
    {"rope_scaling.original_max_position_embeddings", "rope_scaling.original_context", Bearing::kNumbers,
     "tokens of the first training's texts"},
    {"rope_scaling.partial_rotary_factor", "", Bearing::kNumbers, "channels without a position are not built",
     "[null, 1]"},
    {"attention_bias", "attention_bias", Bearing::kNumbers, "of the attention's linear layers"},
    {"tie_word_embeddings", "tied_head", Bearing::kTie, "whether the head's weight is the embedding's"},
    {"rms_norm_eps", "norm_epsilon", Bearing::kNumbers, "added to the mean square"},
    {"initializer_range", "initial_deviation", Bearing::kStart, "of weights that the folder does not hold"},
    {"hidden_act", "", Bearing::kNumbers, "", R"(["silu", "swish"])"},
    {"mlp_bias", "", Bearing::kNumbers, "feed-forward layers with a bias are not built", kOnlyFalse},
    {"sliding_window", "context", Bearing::kWindow},
    {"attention_dropout", "", Bearing::kTraining, "llama trains without it", "[0]"},
    {"quantization_config", "", Bearing::kNumbers, "take the weights that are not quantized", kOnlyNull},
};
constexpr std::string_view kLlamaDefaults = R"({"num_hidden_layers": 32, "num_attention_heads": 32,
  "num_key_value_heads": null, "hidden_size": 4096, "intermediate_size": 11008, "max_position_embeddings": 2048,
  "vocab_size": 32000, "rope_theta": 10000.0, "attention_bias": false, "tie_word_embeddings": false,
  "rms_norm_eps": 1e-6, "initializer_range": 0.02, "hidden_act": "silu", "head_dim": null, "mlp_bias": false,
  "sliding_window": null, "attention_dropout": 0.0})";
constexpr std::string_view kMistralDefaults = R"({"num_hidden_layers": 32, "num_attention_heads": 32,
  "num_key_value_heads": 8, "hidden_size": 4096, "intermediate_size": 14336, "max_position_embeddings": 131072,
  "vocab_size": 32000, "rope_theta": 10000.0, "attention_bias": false, "tie_word_embeddings": false,
  "rms_norm_eps": 1e-6, "initializer_range": 0.02, "hidden_act": "silu", "head_dim": null, "mlp_bias": false,
  "sliding_window": 4096, "attention_dropout": 0.0})";

constexpr HubSetting kBert[] = {
    {"num_hidden_layers", "layers", Bearing::kSize, "blocks"},
    {"num_attention_heads", "heads", Bearing::kNumbers, "heads that share the width"},
    {"hidden_size", "width", Bearing::kSize, "of what flows from block to block"},
    {"intermediate_size", "hidden", Bearing::kSize, "width of the feed-forward layers"},
    {"max_position_embeddings", "context", Bearing::kSize, "tokens of the longest text: positions are learned"},
    {"vocab_size", "vocabulary", Bearing::kSize, "tokens that the model knows"},
    {"hidden_dropout_prob", "dropout", Bearing::kTraining,
     "while training: of embeddings, attention and what blocks add"},
    {"attention_probs_dropout_prob", "dropout", Bearing::kTraining},
    {"classifier_dropout", "dropout", Bearing::kTraining},
    {"layer_norm_eps", "norm_epsilon", Bearing::kNumbers, "added to the variance"},
    {"initializer_range", "initial_deviation", Bearing::kStart, "of weights that the folder does not hold"},
    {"pad_token_id", "pad_token", Bearing::kGiven, "fills texts up: attention does not see it"},
    {"hidden_act", "", Bearing::kNumbers, "", kExactGelu},
    {"type_vocab_size", "", Bearing::kNumbers, "other numbers of token types are not built", "[2]"},
    {"position_embedding_type", "", Bearing::kNumbers, "", R"(["absolute"])"},
    {"is_decoder", "", Bearing::kNumbers, "bert sees the whole text", kOnlyFalse},
    {"add_cross_attention", "", Bearing::kNumbers, "attention to another text is not built", kOnlyFalse},
    {"tie_word_embeddings", "", Bearing::kTie, "the head of masked tokens has the embedding's weight", kOnlyTrue},
    {"quantization_config", "", Bearing::kNumbers, "take the weights that are not quantized", kOnlyNull},
};
constexpr std::string_view kBertDefaults = R"({"num_hidden_layers": 12, "num_attention_heads": 12, "hidden_size": 768,
  "intermediate_size": 3072, "max_position_embeddings": 512, "vocab_size": 30522, "hidden_dropout_prob": 0.1,
  "attention_probs_dropout_prob": 0.1, "classifier_dropout": null, "layer_norm_eps": 1e-12, "initializer_range": 0.02,
  "pad_token_id": 0, "hidden_act": "gelu", "type_vocab_size": 2, "position_embedding_type": "absolute",
  "is_decoder": false, "add_cross_attention": false, "tie_word_embeddings": true})";

constexpr HubSetting kVit[] = {
    {"patch_size", "patch", Bearing::kSize, "extent of the squares that become a position each"},
    {"num_hidden_layers", "layers", Bearing::kSize, "blocks"},
    {"num_attention_heads", "heads", Bearing::kNumbers, "heads that share the width"},
    {"hidden_size", "width", Bearing::kSize, "of what flows from block to block"},
    {"intermediate_size", "hidden", Bearing::kSize, "width of the feed-forward layers"},
    {"hidden_dropout_prob", "dropout", Bearing::kTraining, "while training: of embeddings and what blocks add"},
    {"attention_probs_dropout_prob", "attention_dropout", Bearing::kTraining, "while training: of the attention"},
    {"layer_norm_eps", "norm_epsilon", Bearing::kNumbers, "added to the variance"},
    {"hidden_act", "", Bearing::kNumbers, "", kExactGelu},
    {"qkv_bias", "", Bearing::kNumbers, "attention without biases is not built", kOnlyTrue},
    {"quantization_config", "", Bearing::kNumbers, "take the weights that are not quantized", kOnlyNull},
};
constexpr std::string_view kVitDefaults = R"({"patch_size": 16, "num_hidden_layers": 12, "num_attention_heads": 12,
  "hidden_size": 768, "intermediate_size": 3072, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
  "layer_norm_eps": 1e-12, "hidden_act": "gelu", "qkv_bias": true, "image_size": 224, "num_channels": 3})";

constexpr HubFamily kFamilies[] = {
    {"gpt2", "gpt", kGpt2Defaults, kGpt2},
    {"llama", "llama", kLlamaDefaults, kLlama},
    {"mistral", "llama", kMistralDefaults, kLlama},
    {"bert", "bert", kBertDefaults, kBert},
    {"vit", "vit", kVitDefaults, kVit},
};

}  // namespace

std::span<const HubFamily> hub_families() { return kFamilies; }

const HubFamily* find_family(std::string_view HubFamily::*by, std::string_view name) {
  for (const HubFamily& family : hub_families()) {
    if (family.*by == name) return &family;
  }
  return nullptr;
}

}  // namespace lockstep::model_zoo
