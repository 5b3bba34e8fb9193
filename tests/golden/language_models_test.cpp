// SPDX-License-Identifier: Apache-2.0
// GPT-2 and Llama beside Hugging Face's, whose parameters the file names.

#include "model_zoo/exchange.h"
#include "runtime/data/dataset.h"
#include "runtime/ops/losses.h"
#include "tests/golden/golden_fixture.h"

namespace lockstep::kernels {
namespace {

class GoldenLanguageModels : public GoldenTest {
 protected:
  testing::Bounds bounds() const {
    return dtype() == DType::kFloat64 ? testing::Bounds{1e-9, 1e-9} : testing::Bounds{1e-5, 2e-5};
  }

  /// By their names there.
  static nn::StateDict stored_tensors(const json& stored, DType dtype) {
    nn::StateDict tensors;
    for (const auto& [name, tensor] : stored.items()) tensors[name] = tensor_in(tensor, dtype);
    return tensors;
  }

  void expect_alike(const model_zoo::ModelOptions& options, const model_zoo::ModelInput& input,
                    const json& stored) const {
    const auto net = model_zoo::build(options, input, 1);
    nn::Module& model = *net;
    model.to(device());
    model.to(dtype());
    const nn::StateDict theirs = stored_tensors(stored["parameters"], dtype());
    nn::load_state_dict(model, model_zoo::from_pytorch(options, model, theirs));
    const nn::StateDict back = model_zoo::to_pytorch(options, model);
    for (const auto& [name, tensor] : theirs) {
      SCOPED_TRACE(name);
      ASSERT_TRUE(back.contains(name));
      testing::expect_close(back.at(name), tensor, {1e-6, 1e-6});
    }
    // A strict load there asks for a tied head too.
    EXPECT_TRUE(back.contains("lm_head.weight"));
    EXPECT_EQ(back.size(), theirs.size() + (theirs.contains("lm_head.weight") ? 0 : 1));

    const Tensor logits = model.forward(read(stored["tokens"], DType::kInt64));
    testing::expect_close(logits, tensor_in(stored["logits"], DType::kFloat64), bounds());
    const Tensor loss =
        ops::cross_entropy(logits, read(stored["labels"], DType::kInt64), {.ignore_index = data::kIgnoredLabel});
    EXPECT_NEAR(loss.item(), stored["loss"]["values"][0].get<double>(), 1e-5);
    loss.backward();
    const nn::StateDict gradients =
        model_zoo::from_pytorch(options, model, stored_tensors(stored["gradients"], DType::kFloat64));
    for (const nn::Parameter& parameter : model.parameters()) {
      SCOPED_TRACE(parameter.name);
      testing::expect_close(parameter.tensor.grad(), gradients.at(parameter.name), bounds());
    }
  }

  static model_zoo::ModelInput texts(std::int64_t length) {
    return {.sample_shape = {length}, .outputs = 13, .vocabulary = 13, .target_shape = {length}};
  }
};
INSTANTIATE_TEST_SUITE_P(PyTorch, GoldenLanguageModels, ::testing::ValuesIn(kComputers), name_of_computer);

TEST_P(GoldenLanguageModels, GptIsHuggingFaces) {
  const ScopedBackend computer(device() == kCpu ? backend() : kernels::backend(kCpu));
  const model_zoo::GptOptions options{.layers = 2, .heads = 4, .width = 16, .context = 16, .tied_head = true};
  expect_alike(options, texts(16), golden("language_models")["gpt"]["tied"]);
}

TEST_P(GoldenLanguageModels, LlamaIsHuggingFaces) {
  const ScopedBackend computer(device() == kCpu ? backend() : kernels::backend(kCpu));
  model_zoo::LlamaOptions options{.layers = 2, .heads = 4, .kv_heads = 2, .width = 16, .hidden = 20, .context = 16};
  expect_alike(options, texts(16), golden("language_models")["llama"]["grouped_queries"]);
  options.kv_heads = 1;
  options.attention_bias = options.tied_head = true;
  options.rope_theta = 500;
  expect_alike(options, texts(9), golden("language_models")["llama"]["tied_biased_shorter"]);
}

}  // namespace
}  // namespace lockstep::kernels
