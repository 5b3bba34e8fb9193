// SPDX-License-Identifier: Apache-2.0
// GPT-2 and Llama beside Hugging Face's, whose parameters the file names.

#include "runtime/data/dataset.h"
#include "runtime/ops/losses.h"
#include "tests/golden/their_parameters.h"

namespace lockstep::kernels {
namespace {

class GoldenLanguageModels : public GoldenTest {
 protected:
  testing::Bounds bounds() const {
    return dtype() == DType::kFloat64 ? testing::Bounds{1e-9, 1e-9} : testing::Bounds{1e-5, 2e-5};
  }

  void expect_alike(const model_zoo::ModelOptions& options, const model_zoo::ModelInput& input,
                    const json& stored) const {
    const auto net = model_zoo::build(options, input, 1);
    nn::Module& model = *net;
    model.to(device()).to(dtype());
    take_parameters(options, model, stored["parameters"]);
    const Tensor logits = model.forward(read(stored["tokens"], DType::kInt64));
    testing::expect_close(logits, tensor_in(stored["logits"], DType::kFloat64), bounds());
    const Tensor loss =
        ops::cross_entropy(logits, read(stored["labels"], DType::kInt64), {.ignore_index = data::kIgnoredLabel});
    EXPECT_NEAR(loss.item(), stored["loss"]["values"][0].get<double>(), 1e-5);
    loss.backward();
    expect_gradients(options, model, stored["gradients"], bounds());
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

TEST_P(GoldenLanguageModels, ScaledRotaryPositionsAreHuggingFaces) {
  const ScopedBackend computer(device() == kCpu ? backend() : kernels::backend(kCpu));
  model_zoo::LlamaOptions options{.layers = 2, .heads = 2, .width = 16, .hidden = 20, .context = 16};
  options.rope_scaling = {.factor = 8, .low_freq_factor = 0.5, .high_freq_factor = 4, .original_context = 64};
  expect_alike(options, texts(16), golden("language_models")["llama"]["llama3_scaling"]);
  options.rope_scaling = {.kind = ops::RotaryScalingKind::kLinear, .factor = 4};
  expect_alike(options, texts(16), golden("language_models")["llama"]["linear_scaling"]);
}

}  // namespace
}  // namespace lockstep::kernels
