// SPDX-License-Identifier: Apache-2.0
// Models with weights by PyTorch's names answer what its implementation does, and give the weights back.
#include "model_zoo/exchange.h"

#include <gmock/gmock.h>

#include <cmath>
#include <set>

#include "runtime/autograd/grad_mode.h"
#include "runtime/base/error.h"
#include "tests/golden/golden_fixture.h"

namespace lockstep::model_zoo {
namespace {

using kernels::golden;
using kernels::json;

/// As families/exchange.py makes them.
nn::StateDict pytorch_weights(const json& shapes) {
  nn::StateDict state;
  std::int64_t number = 0;
  for (const json& entry : shapes) {
    const std::string name = entry[0];
    const auto extents = entry[1].get<std::vector<std::int64_t>>();
    const Shape shape{std::span<const std::int64_t>(extents)};
    const std::int64_t own = number++;
    if (name.ends_with("num_batches_tracked")) {
      state[name] = Tensor::from<std::int64_t>({3}, {});
      continue;
    }
    std::vector<float> values;
    for (std::int64_t i = 0; i < shape.numel(); ++i) {
      double value = static_cast<double>((i * 40503 + own * 7919 + 12345) % 65536) / 65536 - 0.5;
      if (name.ends_with("running_var")) {
        value = 1 + value;
      } else if (shape.rank() > 1) {
        value *= std::sqrt(24.0 / static_cast<double>(shape.numel() / shape[0]));
      } else if (name.ends_with("weight")) {
        value = 0.75 + 0.25 * value;
      }
      values.push_back(static_cast<float>(value));
    }
    state[name] = Tensor::from(values, shape);
  }
  return state;
}

class Exchange : public testing::TestWithParam<std::string> {
 protected:
  const json& stored() const { return golden("exchange")["resnet"][GetParam()]; }
  ResnetOptions options() const { return {.depth = stored()["depth"]}; }
  std::unique_ptr<nn::Module> model() const {
    return build(options(), {.sample_shape = {32, 32, 3}, .outputs = 10}, 1);
  }
};

TEST_P(Exchange, AnswersWhatPyTorchDoes) {
  const autograd::NoGrad no_grad;
  const auto net = model();
  nn::load_state_dict(*net, from_pytorch(options(), *net, pytorch_weights(stored()["shapes"])));
  net->train(false);
  constexpr std::int64_t kElements = 2 * 32 * 32 * 3;
  std::vector<float> images;
  for (std::int64_t i = 0; i < kElements; ++i) {
    images.push_back(static_cast<float>(std::cos(-1 + 2 * static_cast<double>(i) / (kElements - 1))));
  }
  const Tensor logits = net->forward(Tensor::from(images, {2, 32, 32, 3}));
  double largest = 0, worst = 0;
  for (std::int64_t i = 0; i < 20; ++i) {
    const double expected = stored()["logits"][static_cast<std::size_t>(i / 10)][static_cast<std::size_t>(i % 10)];
    largest = std::max(largest, std::abs(expected));
    worst = std::max(worst, std::abs(logits.item(i) - expected));
  }
  EXPECT_LE(worst, 1e-5 * largest);
}

TEST_P(Exchange, GivesTheWeightsBack) {
  const nn::StateDict theirs = pytorch_weights(stored()["shapes"]);
  const auto net = model();
  nn::load_state_dict(*net, from_pytorch(options(), *net, theirs));
  const nn::StateDict back = to_pytorch(options(), *net);
  ASSERT_EQ(back.size(), theirs.size());
  for (const auto& [name, tensor] : theirs) {
    ASSERT_TRUE(back.contains(name)) << name;
    const Tensor& found = back.at(name);
    ASSERT_EQ(found.shape(), tensor.shape()) << name;
    if (name.ends_with("num_batches_tracked")) continue;
    EXPECT_TRUE(std::ranges::equal(found.as<float>(), tensor.as<float>())) << name;
  }
}

TEST_P(Exchange, NamesWhatIsMissingAndWhatIsTooMuch) {
  nn::StateDict theirs = pytorch_weights(stored()["shapes"]);
  theirs.erase("layer1.0.conv1.weight");
  theirs["head.weight"] = Tensor::zeros({1}, DType::kFloat32);
  const auto net = model();
  try {
    nn::load_state_dict(*net, from_pytorch(options(), *net, theirs));
    FAIL() << "was loaded";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("missing: stage0_block0.conv0.weight"));
    EXPECT_THAT(error.what(), testing::HasSubstr("unexpected: head.weight"));
  }
  theirs.erase("bn1.running_var");
  EXPECT_THROW(from_pytorch(options(), *net, theirs), UsageError);
}

INSTANTIATE_TEST_SUITE_P(Resnet, Exchange, testing::Values("resnet18", "resnet50"),
                         [](const auto& name) { return name.param; });

TEST(Exchange, ModelsThatPyTorchHasNotKeepTheirNames) {
  const MlpOptions options{.hidden = {3}};
  const auto net = build(options, {.sample_shape = {2}, .outputs = 4}, 1);
  const nn::StateDict theirs = to_pytorch(options, *net);
  EXPECT_TRUE(theirs.contains("hidden0_linear.weight"));
  EXPECT_NO_THROW(nn::load_state_dict(*net, from_pytorch(options, *net, theirs)));
}

class ExchangeOfTexts : public testing::Test {
 protected:
  static constexpr std::int64_t kLength = 6;
  std::unique_ptr<nn::Module> model(const ModelOptions& options) const {
    return build(options,
                 {.sample_shape = {kLength}, .outputs = 9, .vocabulary = 9, .target_shape = {kLength}, .classes = 9},
                 1);
  }
  /// What the file gives `options`' model comes back as the file has it.
  void expect_loads(const ModelOptions& options, const nn::StateDict& file, const nn::StateDict& expected) const {
    const auto net = model(options);
    nn::load_state_dict(*net, from_pytorch(options, *net, file));
    for (const auto& [name, tensor] : to_pytorch(options, *net)) {
      EXPECT_TRUE(std::ranges::equal(tensor.as<float>(), expected.at(name).as<float>())) << name;
    }
  }
  template <class Options>
  static Options small() {
    Options options;
    options.layers = 2;
    options.heads = 2;
    options.width = 8;
    options.context = 6;
    return options;
  }
};

TEST_F(ExchangeOfTexts, AFileWithoutTheHeadsPrefixAndWithMasksIsTheSame) {
  const GptOptions options = small<GptOptions>();
  const nn::StateDict whole = to_pytorch(options, *model(options));
  nn::StateDict file;
  for (const auto& [name, tensor] : whole) {
    if (name != "lm_head.weight") file[name.substr(std::string("transformer.").size())] = tensor;
  }
  file["h.0.attn.bias"] = Tensor::zeros({1, 1, 6, 6}, DType::kFloat32);
  file["h.1.attn.masked_bias"] = Tensor::zeros({}, DType::kFloat32);
  ASSERT_TRUE(file.contains("h.1.attn.c_attn.bias"));
  expect_loads(options, file, whole);
}

TEST_F(ExchangeOfTexts, EitherOfTwoTiedTensorsWillDo) {
  const GptOptions options = small<GptOptions>();
  const nn::StateDict whole = to_pytorch(options, *model(options));
  for (const char* left_out : {"lm_head.weight", "transformer.wte.weight"}) {
    nn::StateDict file = whole;
    ASSERT_EQ(file.erase(left_out), 1u);
    expect_loads(options, file, whole);
  }
  nn::StateDict untied = whole;
  untied["lm_head.weight"] = Tensor::zeros({9, 8}, DType::kFloat32);
  const auto net = model(options);
  EXPECT_THROW(from_pytorch(options, *net, untied), UsageError);
}

TEST_F(ExchangeOfTexts, BiasesThatAModelLacksAreZerosThere) {
  GptOptions options = small<GptOptions>();
  options.bias = false;
  nn::StateDict file = to_pytorch(options, *model(options));
  ASSERT_TRUE(file.contains("transformer.h.1.mlp.c_fc.bias"));
  EXPECT_EQ(file.at("transformer.h.1.mlp.c_fc.bias").shape(), (Shape{32}));
  EXPECT_TRUE(file.contains("transformer.ln_f.bias"));
  expect_loads(options, file, file);
  file["transformer.ln_f.bias"].mutable_as<float>()[0] = 1;
  const auto net = model(options);
  EXPECT_THROW(nn::load_state_dict(*net, from_pytorch(options, *net, file)), UsageError);
}

TEST_F(ExchangeOfTexts, QueriesKeysAndValuesAreThreeOfLlama) {
  LlamaOptions options = small<LlamaOptions>();
  options.kv_heads = 1;
  nn::StateDict file = to_pytorch(options, *model(options));
  EXPECT_EQ(file.at("model.layers.1.self_attn.q_proj.weight").shape(), (Shape{8, 8}));
  EXPECT_EQ(file.at("model.layers.1.self_attn.v_proj.weight").shape(), (Shape{4, 8}));
  expect_loads(options, file, file);
  file.erase("model.layers.1.self_attn.k_proj.weight");
  const auto net = model(options);
  try {
    from_pytorch(options, *net, file);
    FAIL() << "was taken";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("there is no model.layers.1.self_attn.k_proj.weight"));
  }
}

TEST_F(ExchangeOfTexts, AnOlderFileOfBertIsTheSame) {
  const BertOptions options = small<BertOptions>();
  const nn::StateDict whole = to_pytorch(options, *model(options));
  ASSERT_TRUE(whole.contains("cls.predictions.decoder.bias"));
  EXPECT_EQ(whole.at("bert.encoder.layer.1.attention.self.key.weight").shape(), (Shape{8, 8}));
  nn::StateDict file;
  for (const auto& [name, tensor] : whole) {
    if (name.starts_with("cls.predictions.decoder.")) continue;
    const std::size_t norm = name.find("LayerNorm.");
    const std::string ending = name.ends_with("weight") ? "LayerNorm.gamma" : "LayerNorm.beta";
    file[norm == std::string::npos ? name : name.substr(0, norm) + ending] = tensor;
  }
  ASSERT_TRUE(file.contains("bert.embeddings.LayerNorm.gamma"));
  file["bert.embeddings.position_ids"] = Tensor::zeros({1, 6}, DType::kInt64);
  expect_loads(options, file, whole);
}

TEST(Exchange, TorchvisionsVitHasExtentsOfOneBeforeItsTokens) {
  VitOptions options;
  options.layers = options.heads = 1;
  options.width = options.patch = 4;
  const auto net = build(options, {.sample_shape = {8, 8, 3}, .outputs = 2, .classes = 2}, 1);
  const nn::StateDict theirs = to_pytorch(options, *net);
  EXPECT_EQ(theirs.at("class_token").shape(), (Shape{1, 1, 4}));
  EXPECT_EQ(theirs.at("encoder.pos_embedding").shape(), (Shape{1, 5, 4}));
  EXPECT_EQ(theirs.at("conv_proj.weight").shape(), (Shape{4, 3, 4, 4}));
  EXPECT_TRUE(theirs.contains("encoder.layers.encoder_layer_0.self_attention.in_proj_weight"));
  EXPECT_NO_THROW(nn::load_state_dict(*net, from_pytorch(options, *net, theirs)));
}

}  // namespace
}  // namespace lockstep::model_zoo
