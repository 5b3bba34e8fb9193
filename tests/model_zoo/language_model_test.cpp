// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>

#include "model_zoo/build.h"
#include "runtime/autograd/grad_mode.h"
#include "runtime/base/counter_rng.h"
#include "runtime/base/error.h"
#include "runtime/ops/ops.h"
#include "tests/model_zoo/gradients.h"
#include "tests/runtime/kernels/tensors.h"

namespace lockstep::model_zoo {
namespace {

using kernels::testing::expect_close;
using kernels::testing::values_of;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

constexpr std::int64_t kWords = 11, kLength = 6;
const GptOptions kGpt{.layers = 2, .heads = 2, .width = 8, .context = 8};
const LlamaOptions kLlama{.layers = 2, .heads = 4, .kv_heads = 2, .width = 16, .hidden = 12, .context = 8};

ModelInput texts(std::int64_t length = kLength, std::int64_t vocabulary = kWords) {
  return {.sample_shape = {length}, .outputs = vocabulary, .vocabulary = vocabulary, .target_shape = {length}};
}

Tensor tokens(std::int64_t samples, std::int64_t length) {
  const CounterRng rng(1, CounterRng::Purpose::kSynthetic);
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < samples * length; ++i) {
    all.push_back(rng.at(static_cast<std::uint64_t>(i)) % static_cast<std::uint32_t>(kWords));
  }
  return Tensor::from(all, {samples, length});
}

std::unique_ptr<nn::Module> make(const ModelOptions& options) { return build(options, texts(), 1); }

std::vector<std::string> parameter_names(const nn::Module& model) {
  std::vector<std::string> names;
  for (const nn::Parameter& parameter : model.parameters()) names.push_back(parameter.name);
  return names;
}

std::int64_t parameter_count(const nn::Module& model) {
  std::int64_t count = 0;
  for (const nn::Parameter& parameter : model.parameters()) count += parameter.tensor.numel();
  return count;
}

double deviation_of(const nn::Module& model, const std::string& name) {
  for (const nn::Parameter& parameter : model.parameters()) {
    if (parameter.name != name) continue;
    double squares = 0;
    for (const double value : values_of(parameter.tensor)) squares += value * value;
    return std::sqrt(squares / static_cast<double>(parameter.tensor.numel()));
  }
  return -1;
}

Tensor loss_of_texts(nn::Module& model) {
  return ops::cross_entropy(model.forward(tokens(4, kLength)), tokens(4, kLength));
}

struct Kind {
  const char* name;
  ModelOptions options;
};

void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

class LanguageModels : public ::testing::TestWithParam<Kind> {};

INSTANTIATE_TEST_SUITE_P(Models, LanguageModels, ::testing::Values(Kind{"gpt", kGpt}, Kind{"llama", kLlama}),
                         [](const auto& instance) { return instance.param.name; });

TEST_P(LanguageModels, GiveLogitsOfEveryPositionAndReachEveryParameter) {
  const auto model = make(GetParam().options);
  for (const std::int64_t length : {kLength, std::int64_t{8}, std::int64_t{1}}) {
    const Tensor y = model->forward(tokens(3, length));
    EXPECT_EQ(y.shape(), (Shape{3, length, kWords}));
    ops::sum(ops::mul(y, y)).backward();
  }
  for (const nn::Parameter& parameter : model->parameters()) {
    ASSERT_TRUE(parameter.tensor.grad().defined()) << parameter.name;
    EXPECT_THAT(values_of(parameter.tensor.grad()), Contains(Not(0.0))) << parameter.name;
  }
}

TEST_P(LanguageModels, TakeABatchWithoutSamples) {
  const auto model = make(GetParam().options);
  const Tensor y = model->forward(tokens(0, kLength));
  EXPECT_EQ(y.shape(), (Shape{0, kLength, kWords}));
  ops::sum(y).backward();
  for (const nn::Parameter& parameter : model->parameters()) {
    EXPECT_THAT(values_of(parameter.tensor.grad()), ::testing::Each(0)) << parameter.name;
  }
}

TEST_P(LanguageModels, SeeNoTokenThatComesLater) {
  const auto model = make(GetParam().options);
  model->train(false);
  const autograd::NoGrad no_grad;
  const Tensor text = tokens(2, kLength);
  expect_close(model->forward(ops::slice(text, 1, 0, 4)), ops::slice(model->forward(text), 1, 0, 4),
               {.relative = 1e-5, .absolute = 1e-6});
}

TEST_P(LanguageModels, TokenByTokenAreTheWholeText) {
  const auto built = make(GetParam().options);
  auto& model = dynamic_cast<LanguageModel&>(*built);
  EXPECT_EQ(model.context(), 8);
  EXPECT_EQ(model.vocabulary(), kWords);
  model.train(false);
  const autograd::NoGrad no_grad;
  const Tensor text = tokens(2, 8), whole = model.forward(text);
  for (const std::vector<std::int64_t>& parts : {std::vector<std::int64_t>(8, 1), {3, 1, 1, 1, 2}, {5, 3}}) {
    nn::KeyValueCache cache;
    std::int64_t first = 0;
    for (const std::int64_t length : parts) {
      const Tensor y = forward(model, ops::slice(text, 1, first, first + length), cache);
      expect_close(y, ops::slice(whole, 1, first, first + length), {.relative = 1e-5, .absolute = 1e-6});
      first += length;
      EXPECT_EQ(cache.length(), first);
    }
    EXPECT_THROW(forward(model, tokens(2, 1), cache), ShapeError);  // beyond the context
  }
}

TEST_P(LanguageModels, CheckpointTheirBlocksBitForBit) {
  const auto with = [](ModelOptions options, bool checkpointed) {
    if (auto* gpt = std::get_if<GptOptions>(&options)) {
      gpt->checkpoint_activations = checkpointed;
      gpt->dropout = 0.2;
    }
    if (auto* llama = std::get_if<LlamaOptions>(&options)) llama->checkpoint_activations = checkpointed;
    return make(options);
  };
  for (const std::optional<DType> dtype : {std::optional<DType>(), std::optional(DType::kFloat16)}) {
    EXPECT_EQ(gradients_of(*with(GetParam().options, true), loss_of_texts, dtype),
              gradients_of(*with(GetParam().options, false), loss_of_texts, dtype));
  }
}

/// How far a model's gradients in 16 bits are from those in float32.
double error_of(const ModelOptions& options, DType dtype) {
  return distance_between(gradients_of(*make(options), loss_of_texts),
                          gradients_of(*make(options), loss_of_texts, dtype));
}

// A gradient passes some 20 operations, each of which rounds once: 2^-11 or 2^-8 of its size.
TEST_P(LanguageModels, InSixteenBitsAreThoseInThirtyTwoToRounding) {
  EXPECT_LT(error_of(GetParam().options, DType::kFloat16), 20 * 0x1p-11);
  EXPECT_LT(error_of(GetParam().options, DType::kBFloat16), 20 * 0x1p-8);
  EXPECT_GT(error_of(GetParam().options, DType::kBFloat16), 0);
}

TEST_P(LanguageModels, RefuseWhatIsNoText) {
  const std::string path = std::string("model.") + GetParam().name;
  const auto refuses = [&](const ModelInput& input, const std::string& message) {
    EXPECT_THAT([&] { build(GetParam().options, input, 1); }, ThrowsMessage<FieldError>(HasSubstr(message)));
  };
  refuses({{8, 8, 1}, 10}, path + ": needs texts with a label a position; the data has numbers [8, 8, 1]");
  ModelInput one_label = texts();
  one_label.target_shape = {};
  refuses(one_label, path + ": needs texts");
  refuses(texts(9), path + ".context: 8 is shorter than the data's texts: 9");
  const auto model = make(GetParam().options);
  EXPECT_THROW(model->forward(tokens(1, 9)), ShapeError);
  EXPECT_THROW(model->forward(Tensor::zeros({1, 4}, DType::kFloat32)), ShapeError);
  EXPECT_THROW(model->forward(Tensor::zeros({4}, DType::kInt64)), ShapeError);
}

TEST(Gpt, NamesItsParametersAndTiesItsHead) {
  EXPECT_THAT(
      parameter_names(*make(GptOptions{.layers = 1, .heads = 1, .width = 4, .context = 8})),
      ElementsAre("token_embedding.weight", "position_embedding.weight", "block0.attention_norm.weight",
                  "block0.attention_norm.bias", "block0.attention.input.weight", "block0.attention.input.bias",
                  "block0.attention.output.weight", "block0.attention.output.bias", "block0.feed_forward_norm.weight",
                  "block0.feed_forward_norm.bias", "block0.feed_forward.hidden.weight",
                  "block0.feed_forward.hidden.bias", "block0.feed_forward.output.weight",
                  "block0.feed_forward.output.bias", "norm.weight", "norm.bias"));
  EXPECT_THAT(parameter_names(*make(
                  GptOptions{.layers = 1, .heads = 1, .width = 4, .context = 8, .bias = false, .tied_head = false})),
              ElementsAre("token_embedding.weight", "position_embedding.weight", "block0.attention_norm.weight",
                          "block0.attention.input.weight", "block0.attention.output.weight",
                          "block0.feed_forward_norm.weight", "block0.feed_forward.hidden.weight",
                          "block0.feed_forward.output.weight", "norm.weight", "head.weight"));
}

TEST(Gpt, IsOfGpt2sSizeByDefault) {
  EXPECT_EQ(parameter_count(*outline(GptOptions(), texts(1024, 50257))), 124439808);
  EXPECT_EQ(parameter_count(*outline(GptOptions{.vocabulary = 50304}, texts(1024, 50257))), 124439808 + 47 * 768);
  EXPECT_EQ(parameter_count(*outline(GptOptions{.layers = 48, .heads = 25, .width = 1600}, texts(64, 50257))),
            1557611200);
}

TEST(Gpt, StartsAsThePaperSays) {
  const auto model = make(GptOptions{.layers = 8, .heads = 2, .width = 64, .context = 64});
  EXPECT_NEAR(deviation_of(*model, "token_embedding.weight"), 0.02, 0.002);
  EXPECT_NEAR(deviation_of(*model, "position_embedding.weight"), 0.02, 0.002);
  EXPECT_NEAR(deviation_of(*model, "block3.attention.input.weight"), 0.02, 0.001);
  EXPECT_NEAR(deviation_of(*model, "block3.attention.output.weight"), 0.005, 0.0003);
  EXPECT_NEAR(deviation_of(*model, "block3.feed_forward.output.weight"), 0.005, 0.0003);
  EXPECT_EQ(deviation_of(*model, "block3.feed_forward.hidden.bias"), 0);
  EXPECT_EQ(deviation_of(*model, "block3.attention_norm.weight"), 1);
}

TEST(Gpt, RefusesASmallerVocabularyThanTheDatas) {
  GptOptions options = kGpt;
  options.vocabulary = kWords - 1;
  EXPECT_THAT([&] { make(options); }, ThrowsMessage<FieldError>(HasSubstr("model.gpt.vocabulary: 10 are fewer")));
  options.vocabulary = kWords + 5;
  EXPECT_EQ(make(options)->forward(tokens(1, 2)).shape(), (Shape{1, 2, kWords + 5}));
}

TEST(Llama, NamesItsParameters) {
  const LlamaOptions options{.layers = 1, .heads = 2, .kv_heads = 1, .width = 4, .hidden = 6, .context = 8};
  EXPECT_THAT(parameter_names(*make(options)),
              ElementsAre("token_embedding.weight", "block0.attention_norm.weight", "block0.attention.input.weight",
                          "block0.attention.output.weight", "block0.feed_forward_norm.weight",
                          "block0.feed_forward.gate.weight", "block0.feed_forward.up.weight",
                          "block0.feed_forward.output.weight", "norm.weight", "head.weight"));
  EXPECT_NEAR(deviation_of(*make(kLlama), "block1.feed_forward.output.weight"), 0.02, 0.004);
}

TEST(Llama, IsOfLlama2sSizeByDefault) {
  EXPECT_EQ(parameter_count(*outline(LlamaOptions(), texts(4096, 32000))), 6738415616);
  // TinyLlama
  EXPECT_EQ(parameter_count(*outline(LlamaOptions{.layers = 22, .kv_heads = 4, .width = 2048}, texts(2048, 32000))),
            1100048384);
}

}  // namespace
}  // namespace lockstep::model_zoo
