// SPDX-License-Identifier: Apache-2.0
// GPT-2 and Llama beside Hugging Face's, whose parameters the file names.

#include "model_zoo/gpt.h"
#include "model_zoo/llama.h"
#include "runtime/data/dataset.h"
#include "runtime/ops/losses.h"
#include "tests/golden/their_parameters.h"

namespace lockstep::kernels {
namespace {

Theirs in_gpt(const std::string& name) {
  if (name == "token_embedding.weight") return {{"transformer.wte.weight"}};
  if (name == "position_embedding.weight") return {{"transformer.wpe.weight"}};
  if (name.starts_with("norm.")) return {{"transformer.ln_f." + name.substr(5)}};
  const std::size_t dot = name.find('.'), last = name.rfind('.');
  const std::string block = "transformer.h." + name.substr(5, dot - 5) + ".", kind = name.substr(last);
  const std::string layer = name.substr(dot + 1, last - dot - 1);
  const std::map<std::string, std::string> layers{
      {"attention_norm", "ln_1"},    {"attention.input", "attn.c_attn"},  {"attention.output", "attn.c_proj"},
      {"feed_forward_norm", "ln_2"}, {"feed_forward.hidden", "mlp.c_fc"}, {"feed_forward.output", "mlp.c_proj"}};
  // Linear layers are transposed there.
  const bool transposed = !layer.ends_with("norm") && kind == ".weight";
  return {{block + layers.at(layer) + kind}, transposed ? Theirs::Layout::kTransposed : Theirs::Layout::kSame};
}

Theirs in_llama(const std::string& name) {
  if (name == "token_embedding.weight") return {{"model.embed_tokens.weight"}};
  if (name == "head.weight") return {{"lm_head.weight"}};
  if (name == "norm.weight") return {{"model.norm.weight"}};
  const std::size_t dot = name.find('.'), last = name.rfind('.');
  const std::string block = "model.layers." + name.substr(5, dot - 5) + ".", kind = name.substr(last);
  const std::string layer = name.substr(dot + 1, last - dot - 1);
  if (layer == "attention.input") {
    return {{block + "self_attn.q_proj" + kind, block + "self_attn.k_proj" + kind, block + "self_attn.v_proj" + kind}};
  }
  const std::map<std::string, std::string> layers{{"attention_norm", "input_layernorm"},
                                                  {"attention.output", "self_attn.o_proj"},
                                                  {"feed_forward_norm", "post_attention_layernorm"},
                                                  {"feed_forward.gate", "mlp.gate_proj"},
                                                  {"feed_forward.up", "mlp.up_proj"},
                                                  {"feed_forward.output", "mlp.down_proj"}};
  return {{block + layers.at(layer) + kind}};
}

class GoldenLanguageModels : public GoldenTest {
 protected:
  testing::Bounds bounds() const {
    return dtype() == DType::kFloat64 ? testing::Bounds{1e-9, 1e-9} : testing::Bounds{1e-5, 2e-5};
  }

  void expect_alike(nn::Module& model, Correspondence theirs, const json& stored) const {
    model.to(device());
    model.to(dtype());
    take_parameters(model, theirs, stored["parameters"]);
    const Tensor logits = model.forward(read(stored["tokens"], DType::kInt64));
    testing::expect_close(logits, tensor_in(stored["logits"], DType::kFloat64), bounds());
    const Tensor loss =
        ops::cross_entropy(logits, read(stored["labels"], DType::kInt64), {.ignore_index = data::kIgnoredLabel});
    EXPECT_NEAR(loss.item(), stored["loss"]["values"][0].get<double>(), 1e-5);
    loss.backward();
    expect_gradients(model, theirs, stored["gradients"], bounds());
  }

  static model_zoo::ModelInput texts(std::int64_t length) {
    return {.sample_shape = {length}, .outputs = 13, .vocabulary = 13, .target_shape = {length}};
  }
};
INSTANTIATE_TEST_SUITE_P(PyTorch, GoldenLanguageModels, ::testing::ValuesIn(kComputers), name_of_computer);

TEST_P(GoldenLanguageModels, GptIsHuggingFaces) {
  const ScopedBackend computer(device() == kCpu ? backend() : kernels::backend(kCpu));
  const auto model =
      model_zoo::make_gpt({.layers = 2, .heads = 4, .width = 16, .context = 16, .tied_head = true}, texts(16));
  expect_alike(*model, in_gpt, golden("language_models")["gpt"]["tied"]);
}

TEST_P(GoldenLanguageModels, LlamaIsHuggingFaces) {
  const ScopedBackend computer(device() == kCpu ? backend() : kernels::backend(kCpu));
  model_zoo::LlamaOptions options{.layers = 2, .heads = 4, .kv_heads = 2, .width = 16, .hidden = 20, .context = 16};
  expect_alike(*model_zoo::make_llama(options, texts(16)), in_llama,
               golden("language_models")["llama"]["grouped_queries"]);
  options.kv_heads = 1;
  options.attention_bias = options.tied_head = true;
  options.rope_theta = 500;
  expect_alike(*model_zoo::make_llama(options, texts(9)), in_llama,
               golden("language_models")["llama"]["tied_biased_shorter"]);
}

}  // namespace
}  // namespace lockstep::kernels
