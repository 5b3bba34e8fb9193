// SPDX-License-Identifier: Apache-2.0
#include "model_zoo/pytorch_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>
#include <utility>

namespace lockstep::model_zoo {

namespace {

using Pairs = std::span<const std::pair<std::string_view, std::string_view>>;

constexpr std::string_view kRunning = ".running";

/// "block0.conv" and ".weight"
std::pair<std::string, std::string> split(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos) return {name, ""};
  return {name.substr(0, dot), name.substr(dot)};
}

/// The name beside `name` in the table; `name` itself where none is.
std::string in_table(Pairs table, const std::string& name) {
  for (const auto& [ours, theirs] : table) {
    if (name == ours) return std::string(theirs);
  }
  return name;
}

/// A module of a block, "block12.attention.input".
struct InBlock {
  int number = -1;     ///< -1: of no block
  std::string module;  ///< "attention.input"
};

InBlock in_block(const std::string& module) {
  InBlock found;
  std::array<char, 64> rest{};
  if (std::sscanf(module.c_str(), "block%d.%63s", &found.number, rest.data()) == 2) {
    found.module = rest.data();
  } else {
    found.number = -1;
  }
  return found;
}

template <class Options>
PyTorchTensor tensor_of(const Options&, const std::string& module, const std::string& leaf) {
  return {.names = {module + leaf}};
}

/// torchvision.models.resnet
PyTorchTensor tensor_of(const ResnetOptions&, const std::string& module, const std::string& leaf) {
  constexpr std::pair<std::string_view, std::string_view> kWhole[] = {
      {"stem_conv", "conv1"}, {"stem_norm", "bn1"}, {"classifier", "fc"}};
  int stage = 0, block = 0;
  std::array<char, 16> part{};
  if (std::sscanf(module.c_str(), "stage%d_block%d.%15s", &stage, &block, part.data()) != 3) {
    return {.names = {in_table(kWhole, module) + leaf}};
  }
  const std::string_view name = part.data();
  const std::string prefix = fmt::format("layer{}.{}.", stage + 1, block);
  if (name == "shortcut_conv") return {.names = {prefix + "downsample.0" + leaf}};
  if (name == "shortcut_norm") return {.names = {prefix + "downsample.1" + leaf}};
  const int number = name.back() - '0' + 1;
  return {.names = {prefix + (name.starts_with("conv") ? "conv" : "bn") + std::to_string(number) + leaf}};
}

/// transformers' GPT2LMHeadModel: the weights of linear layers are [in, out], and all that blocks hold has a bias.
PyTorchTensor tensor_of(const GptOptions&, const std::string& module, const std::string& leaf) {
  constexpr std::pair<std::string_view, std::string_view> kWhole[] = {{"token_embedding", "transformer.wte"},
                                                                      {"position_embedding", "transformer.wpe"},
                                                                      {"norm", "transformer.ln_f"},
                                                                      {"head", "lm_head"}};
  constexpr std::pair<std::string_view, std::string_view> kOfBlock[] = {
      {"attention_norm", "ln_1"},    {"attention.input", "attn.c_attn"},  {"attention.output", "attn.c_proj"},
      {"feed_forward_norm", "ln_2"}, {"feed_forward.hidden", "mlp.c_fc"}, {"feed_forward.output", "mlp.c_proj"}};
  const InBlock of = in_block(module);
  const std::string there = of.number < 0
                                ? in_table(kWhole, module)
                                : fmt::format("transformer.h.{}.{}", of.number, in_table(kOfBlock, of.module));
  const bool is_norm = module.ends_with("norm"), is_weight = leaf == ".weight";
  PyTorchTensor theirs{.names = {there + leaf}, .transposed = is_weight && of.number >= 0 && !is_norm};
  if (is_weight && (of.number >= 0 || is_norm)) theirs.bias = there + ".bias";
  return theirs;
}

/// transformers' LlamaForCausalLM. Both turn channels i and i + d/2 of a head as one point, so that no rows change
/// places.
PyTorchTensor tensor_of(const LlamaOptions& options, const std::string& module, const std::string& leaf) {
  constexpr std::pair<std::string_view, std::string_view> kWhole[] = {
      {"token_embedding", "model.embed_tokens"}, {"norm", "model.norm"}, {"head", "lm_head"}};
  constexpr std::pair<std::string_view, std::string_view> kOfBlock[] = {
      {"attention_norm", "input_layernorm"},
      {"attention.output", "self_attn.o_proj"},
      {"feed_forward_norm", "post_attention_layernorm"},
      {"feed_forward.gate", "mlp.gate_proj"},
      {"feed_forward.up", "mlp.up_proj"},
      {"feed_forward.output", "mlp.down_proj"}};
  const InBlock of = in_block(module);
  if (of.number < 0) return {.names = {in_table(kWhole, module) + leaf}};
  const std::string block = fmt::format("model.layers.{}.", of.number);
  if (of.module != "attention.input") return {.names = {block + in_table(kOfBlock, of.module) + leaf}};
  const std::int64_t kv_heads = options.kv_heads.value_or(options.heads);
  PyTorchTensor theirs{.shares = {options.heads, kv_heads, kv_heads}};
  for (const char part : {'q', 'k', 'v'})
    theirs.names.push_back(fmt::format("{}self_attn.{}_proj{}", block, part, leaf));
  return theirs;
}

/// torchvision.models.VisionTransformer
PyTorchTensor tensor_of(const VitOptions&, const std::string& module, const std::string& leaf) {
  constexpr std::pair<std::string_view, std::string_view> kWhole[] = {
      {"patches", "conv_proj"}, {"norm", "encoder.ln"}, {"classifier", "heads.head"}};
  constexpr std::pair<std::string_view, std::string_view> kOfBlock[] = {{"attention_norm", "ln_1"},
                                                                        {"attention.output", "self_attention.out_proj"},
                                                                        {"feed_forward_norm", "ln_2"},
                                                                        {"feed_forward.hidden", "mlp.0"},
                                                                        {"feed_forward.output", "mlp.3"}};
  if (module == "class_token") return {.names = {module}, .leading = 2};
  if (module == "position_embedding") return {.names = {"encoder.pos_embedding"}, .leading = 1};
  const InBlock of = in_block(module);
  if (of.number < 0) return {.names = {in_table(kWhole, module) + leaf}};
  const std::string block = fmt::format("encoder.layers.encoder_layer_{}.", of.number);
  if (of.module == "attention.input") return {.names = {block + "self_attention.in_proj_" + leaf.substr(1)}};
  return {.names = {block + in_table(kOfBlock, of.module) + leaf}};
}

/// The three matrices of a block's attention that are one here, "PREFIX query SUFFIX" and so on.
PyTorchTensor query_key_value(const std::string& prefix, const std::string& suffix) {
  PyTorchTensor theirs{.shares = {1, 1, 1}};
  for (const char* const part : {"query", "key", "value"}) {
    theirs.names.push_back(fmt::format("{}{}{}", prefix, part, suffix));
  }
  return theirs;
}

/// transformers' ViTForImageClassification
PyTorchTensor hub_vit_tensor(const std::string& module, const std::string& leaf) {
  constexpr std::pair<std::string_view, std::string_view> kWhole[] = {
      {"patches", "vit.embeddings.patch_embeddings.projection"}, {"norm", "vit.layernorm"}};
  constexpr std::pair<std::string_view, std::string_view> kOfBlock[] = {{"attention_norm", "layernorm_before"},
                                                                        {"attention.output", "attention.output.dense"},
                                                                        {"feed_forward_norm", "layernorm_after"},
                                                                        {"feed_forward.hidden", "intermediate.dense"},
                                                                        {"feed_forward.output", "output.dense"}};
  if (module == "class_token") return {.names = {"vit.embeddings.cls_token"}, .leading = 2};
  if (module == "position_embedding") return {.names = {"vit.embeddings.position_embeddings"}, .leading = 1};
  const InBlock of = in_block(module);
  if (of.number < 0) return {.names = {in_table(kWhole, module) + leaf}};
  const std::string block = fmt::format("vit.encoder.layer.{}.", of.number);
  if (of.module == "attention.input") return query_key_value(block + "attention.attention.", leaf);
  return {.names = {block + in_table(kOfBlock, of.module) + leaf}};
}

/// transformers' BertForMaskedLM and BertForSequenceClassification
PyTorchTensor tensor_of(const BertOptions&, const std::string& module, const std::string& leaf) {
  constexpr std::pair<std::string_view, std::string_view> kWhole[] = {
      {"token_embedding", "bert.embeddings.word_embeddings"},
      {"position_embedding", "bert.embeddings.position_embeddings"},
      {"token_type_embedding", "bert.embeddings.token_type_embeddings"},
      {"embedding_norm", "bert.embeddings.LayerNorm"},
      {"transform", "cls.predictions.transform.dense"},
      {"transform_norm", "cls.predictions.transform.LayerNorm"},
      {"head", "cls.predictions"},
      {"pooler", "bert.pooler.dense"}};
  constexpr std::pair<std::string_view, std::string_view> kOfBlock[] = {
      {"attention.output", "attention.output.dense"},
      {"attention_norm", "attention.output.LayerNorm"},
      {"feed_forward.hidden", "intermediate.dense"},
      {"feed_forward.output", "output.dense"},
      {"feed_forward_norm", "output.LayerNorm"}};
  const InBlock of = in_block(module);
  if (of.number < 0) return {.names = {in_table(kWhole, module) + leaf}};
  const std::string block = fmt::format("bert.encoder.layer.{}.", of.number);
  if (of.module == "attention.input") return query_key_value(block + "attention.self.", leaf);
  return {.names = {block + in_table(kOfBlock, of.module) + leaf}};
}

template <class Options>
PyTorchFile file_of(const Options&, const nn::StateDict&) {
  return {};
}

/// The causal mask is a buffer of files that are older than 2023.
PyTorchFile file_of(const GptOptions& options, const nn::StateDict&) {
  PyTorchFile file{.prefix = "transformer.", .buffers = {".attn.bias", ".attn.masked_bias"}};
  if (options.tied_head) file.copies = {{"lm_head.weight", "transformer.wte.weight"}};
  return file;
}

PyTorchFile file_of(const LlamaOptions& options, const nn::StateDict&) {
  PyTorchFile file{.prefix = "model.", .buffers = {".rotary_emb.inv_freq"}};
  if (options.tied_head) file.copies = {{"lm_head.weight", "model.embed_tokens.weight"}};
  return file;
}

PyTorchFile file_of(const BertOptions&, const nn::StateDict& ours) {
  PyTorchFile file{.prefix = "bert.",
                   .buffers = {"embeddings.position_ids"},
                   .ends = {{"LayerNorm.gamma", "LayerNorm.weight"}, {"LayerNorm.beta", "LayerNorm.bias"}}};
  if (ours.contains("head.bias")) {
    file.copies = {{"cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"},
                   {"cls.predictions.decoder.bias", "cls.predictions.bias"}};
  }
  return file;
}

}  // namespace

PyTorchTensor pytorch_tensor(const ModelOptions& options, const std::string& name, PyTorchSource source) {
  const auto [module, leaf] = split(name);
  const std::string part = leaf == kRunning ? "" : leaf;
  if (source == PyTorchSource::kTransformers && std::holds_alternative<VitOptions>(options)) {
    return hub_vit_tensor(module, part);
  }
  return std::visit([&, &whole = module](const auto& kind) { return tensor_of(kind, whole, part); }, options);
}

PyTorchFile pytorch_file(const ModelOptions& options, const nn::StateDict& ours, PyTorchSource source) {
  if (source == PyTorchSource::kTransformers && std::holds_alternative<VitOptions>(options)) return {.prefix = "vit."};
  return std::visit([&ours](const auto& kind) { return file_of(kind, ours); }, options);
}

PyTorchSource source_of(const ModelOptions& options, const nn::StateDict& theirs) {
  if (!std::holds_alternative<VitOptions>(options)) return PyTorchSource::kAsDocumented;
  const auto is_hub = [](const auto& entry) { return entry.first.ends_with("embeddings.cls_token"); };
  return std::ranges::any_of(theirs, is_hub) ? PyTorchSource::kTransformers : PyTorchSource::kAsDocumented;
}

}  // namespace lockstep::model_zoo
