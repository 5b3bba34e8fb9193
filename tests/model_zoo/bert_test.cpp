// SPDX-License-Identifier: Apache-2.0
#include "model_zoo/bert.h"

#include <gmock/gmock.h>

#include "model_zoo/build.h"
#include "runtime/autograd/grad_mode.h"
#include "runtime/base/error.h"
#include "runtime/data/dataset.h"
#include "tests/model_zoo/gradients.h"

namespace lockstep::model_zoo {
namespace {

using kernels::testing::expect_close;
using kernels::testing::values_of;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

constexpr std::int64_t kBertWords = 11, kBertLength = 6, kKinds = 3;
const BertOptions kSmallBert{.layers = 2, .heads = 2, .width = 8, .context = 8, .dropout = 0, .initial_deviation = 0.2};

enum class Head { kMasked, kClasses };

ModelInput texts(Head head, std::int64_t length = kBertLength) {
  if (head == Head::kClasses) {
    return {.sample_shape = {length}, .outputs = kKinds, .vocabulary = kBertWords, .classes = kKinds};
  }
  return {.sample_shape = {length},
          .outputs = kBertWords,
          .vocabulary = kBertWords,
          .target_shape = {length},
          .classes = kBertWords};
}

Tensor bert_tokens(std::int64_t samples, std::int64_t length) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < samples * length; ++i) all.push_back((i * i + 3 * i + 1) % kBertWords);
  return Tensor::from(all, {samples, length});
}

class Bert : public testing::TestWithParam<Head> {
 protected:
  static std::unique_ptr<nn::Module> make(const BertOptions& options = kSmallBert) {
    return build(options, texts(GetParam()), 1);
  }
  static Tensor loss(nn::Module& model) {
    const Tensor labels = GetParam() == Head::kClasses ? Tensor::from(std::vector<std::int64_t>{0, 2, 1, 1}, {4})
                                                       : bert_tokens(4, kBertLength);
    return ops::cross_entropy(model.forward(bert_tokens(4, kBertLength)), labels);
  }
  static Shape answer(std::int64_t samples, std::int64_t length = kBertLength) {
    return GetParam() == Head::kClasses ? Shape{samples, kKinds} : Shape{samples, length, kBertWords};
  }
};

INSTANTIATE_TEST_SUITE_P(Heads, Bert, testing::Values(Head::kMasked, Head::kClasses),
                         [](const auto& head) { return head.param == Head::kMasked ? "masked" : "classes"; });

TEST_P(Bert, AnswersTextsOfAnyLengthAndReachesEveryParameter) {
  const auto model = make();
  for (const std::int64_t length : {kBertLength, std::int64_t{8}, std::int64_t{1}}) {
    const Tensor y = model->forward(bert_tokens(3, length));
    EXPECT_EQ(y.shape(), answer(3, length));
    ops::sum(ops::mul(y, y)).backward();
  }
  for (const nn::Parameter& parameter : model->parameters()) {
    ASSERT_TRUE(parameter.tensor.grad().defined()) << parameter.name;
    EXPECT_THAT(values_of(parameter.tensor.grad()), Contains(Not(0.0))) << parameter.name;
  }
}

TEST_P(Bert, TakesABatchWithoutSamples) {
  const auto model = make();
  const Tensor y = model->forward(bert_tokens(0, kBertLength));
  EXPECT_EQ(y.shape(), answer(0));
  ops::sum(y).backward();
  for (const nn::Parameter& parameter : model->parameters()) {
    EXPECT_THAT(values_of(parameter.tensor.grad()), Each(0)) << parameter.name;
  }
}

TEST_P(Bert, SeesTokensThatComeLater) {
  const auto model = make();
  const autograd::NoGrad no_grad;
  const Tensor text = bert_tokens(1, kBertLength), other = bert_tokens(1, kBertLength);
  other.mutable_as<std::int64_t>()[kBertLength - 1] = (text.as<std::int64_t>()[kBertLength - 1] + 1) % kBertWords;
  const std::vector<double> here = values_of(model->forward(text)), there = values_of(model->forward(other));
  EXPECT_NE(here[0], there[0]);
}

TEST_P(Bert, DoesNotSeeWhatFillsATextUp) {
  BertOptions options = kSmallBert;
  options.pad_token = 4;
  const auto model = make(options);
  const autograd::NoGrad no_grad;
  const auto of = [&](const std::vector<std::int64_t>& text) {
    return values_of(model->forward(Tensor::from(text, {1, static_cast<std::int64_t>(text.size())})));
  };
  std::vector<double> longer = of({1, 2, 3, 4, 4});
  const std::vector<double> shorter = of({1, 2, 3});
  longer.resize(shorter.size());
  for (std::size_t i = 0; i < shorter.size(); ++i) EXPECT_NEAR(longer[i], shorter[i], 1e-5);
  options.pad_token = 5;
  EXPECT_GT(
      std::abs(values_of(make(options)->forward(Tensor::from(std::vector<std::int64_t>{1, 2, 3, 4, 4}, {1, 5})))[0] -
               shorter[0]),
      1e-3);
}

TEST_P(Bert, CheckpointsItsBlocksBitForBit) {
  for (const std::optional<DType> dtype : {std::optional<DType>(), std::optional(DType::kFloat16)}) {
    BertOptions options = kSmallBert;
    options.dropout = 0.2;
    options.pad_token = 1;  // the first of all texts
    const auto plain = gradients_of(*make(options), loss, dtype);
    options.checkpoint_activations = true;
    EXPECT_EQ(gradients_of(*make(options), loss, dtype), plain);
    options.pad_token.reset();
    EXPECT_NE(gradients_of(*make(options), loss, dtype), plain);
  }
}

// A gradient passes some 20 operations, each of which rounds once: 2^-11 or 2^-8 of its size.
TEST_P(Bert, InSixteenBitsIsThatInThirtyTwoToRounding) {
  const auto exact = gradients_of(*make(), loss);
  EXPECT_LT(distance_between(exact, gradients_of(*make(), loss, DType::kFloat16)), 20 * 0x1p-11);
  EXPECT_LT(distance_between(exact, gradients_of(*make(), loss, DType::kBFloat16)), 20 * 0x1p-8);
  EXPECT_GT(distance_between(exact, gradients_of(*make(), loss, DType::kBFloat16)), 0);
}

TEST_P(Bert, RefusesWhatItDoesNotFit) {
  const auto refuses = [](const BertOptions& options, const ModelInput& input, const std::string& message) {
    EXPECT_THAT([&] { build(options, input, 1); }, ThrowsMessage<FieldError>(HasSubstr(message)));
  };
  refuses(kSmallBert, {.sample_shape = {8, 8, 1}, .outputs = 10, .classes = 10},
          "model.bert: needs texts with a label a position, or with one target; the data has numbers [8, 8, 1]");
  refuses(kSmallBert, texts(GetParam(), 9), "model.bert.context: 8 is shorter than the data's texts: 9");
  BertOptions options = kSmallBert;
  options.vocabulary = kBertWords - 1;
  refuses(options, texts(GetParam()), "model.bert.vocabulary: 10 are fewer tokens than the data has: 11");
  options = kSmallBert;
  options.pad_token = kBertWords;
  refuses(options, texts(GetParam()), "model.bert.pad_token: 11 is outside the vocabulary of 11");
  options = kSmallBert;
  options.heads = 3;
  refuses(options, texts(GetParam()), "model.bert.heads: must be a divisor of width, is 3");
  const auto model = make();
  EXPECT_THROW(model->forward(bert_tokens(1, 9)), ShapeError);
  EXPECT_THROW(model->forward(Tensor::zeros({1, 4}, DType::kFloat32)), ShapeError);
}

std::vector<std::string> names_of(Head head) {
  BertOptions options = kSmallBert;
  options.layers = 1;
  std::vector<std::string> names;
  for (const nn::Parameter& parameter : build(options, texts(head), 1)->parameters()) names.push_back(parameter.name);
  return names;
}

TEST(BertModel, NamesItsParametersAndTiesItsHead) {
  const std::vector<std::string> encoder{"token_embedding.weight",
                                         "position_embedding.weight",
                                         "token_type_embedding.weight",
                                         "embedding_norm.weight",
                                         "embedding_norm.bias",
                                         "block0.attention_norm.weight",
                                         "block0.attention_norm.bias",
                                         "block0.attention.input.weight",
                                         "block0.attention.input.bias",
                                         "block0.attention.output.weight",
                                         "block0.attention.output.bias",
                                         "block0.feed_forward_norm.weight",
                                         "block0.feed_forward_norm.bias",
                                         "block0.feed_forward.hidden.weight",
                                         "block0.feed_forward.hidden.bias",
                                         "block0.feed_forward.output.weight",
                                         "block0.feed_forward.output.bias"};
  const auto with = [&](const std::vector<std::string>& head) {
    std::vector<std::string> names = encoder;
    names.insert(names.end(), head.begin(), head.end());
    return names;
  };
  EXPECT_EQ(names_of(Head::kMasked),
            with({"transform.weight", "transform.bias", "transform_norm.weight", "transform_norm.bias", "head.bias"}));
  EXPECT_EQ(names_of(Head::kClasses), with({"pooler.weight", "pooler.bias", "classifier.weight", "classifier.bias"}));
}

TEST(BertModel, IsOfBertsSizes) {
  const auto parameters_of = [](const BertOptions& options, Head head) {
    ModelInput input = texts(head, 128);
    input.vocabulary = 30522;
    if (head == Head::kMasked) input.outputs = input.classes = 30522;
    std::int64_t count = 0;
    for (const nn::Parameter& parameter : outline(options, input)->parameters()) count += parameter.tensor.numel();
    return count;
  };
  // Hugging Face's bert-base-uncased and bert-large-uncased.
  EXPECT_EQ(parameters_of({}, Head::kMasked), 109514298);
  EXPECT_EQ(parameters_of({}, Head::kClasses), 109482240 + 3 * 769);
  EXPECT_EQ(parameters_of({.layers = 24, .heads = 16, .width = 1024}, Head::kClasses), 335141888 + 3 * 1025);
}

TEST(BertModel, LearnsNothingOfTheTokenThatFillsTextsUp) {
  const auto gradient_of_first_token = [](std::optional<std::int64_t> pad_token) {
    BertOptions options = kSmallBert;
    options.pad_token = pad_token;
    const auto model = build(options, texts(Head::kClasses), 1);
    // A text of which the classifier reads what fills it up.
    ops::sum(model->forward(Tensor::from(std::vector<std::int64_t>{4, 1, 2, 3}, {1, 4}))).backward();
    return values_of(model->parameters().front().tensor.grad().rows(4, 5));
  };
  EXPECT_THAT(gradient_of_first_token(4), Each(0));
  EXPECT_THAT(gradient_of_first_token({}), Contains(Not(0.0)));
}

TEST(BertModel, GivesTheNumbersOfARegression) {
  const auto model = build(
      kSmallBert, {.sample_shape = {kBertLength}, .outputs = 1, .vocabulary = kBertWords, .target_shape = {1}}, 1);
  EXPECT_EQ(model->forward(bert_tokens(3, kBertLength)).shape(), (Shape{3, 1}));
}

}  // namespace
}  // namespace lockstep::model_zoo
