// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <array>
#include <cmath>

#include "model_zoo/build.h"
#include "runtime/base/error.h"
#include "runtime/ops/ops.h"
#include "tests/runtime/kernels/tensors.h"

namespace lockstep::model_zoo {
namespace {

using kernels::testing::random_tensor;
using kernels::testing::values_of;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// Rows of numbers with tokens beside them.
ModelInput table(std::int64_t numbers, const std::vector<std::int64_t>& vocabularies) {
  ModelInput input{.sample_shape = {numbers}, .outputs = 2, .classes = 2};
  for (const std::int64_t vocabulary : vocabularies) input.more_inputs.push_back({{1}, vocabulary});
  return input;
}

std::vector<std::pair<std::string, Shape>> parameters_of_mlp(const ModelInput& input) {
  std::vector<std::pair<std::string, Shape>> shapes;
  for (const nn::Parameter& parameter : build(MlpOptions{.hidden = {3}}, input, 1)->parameters()) {
    shapes.emplace_back(parameter.name, parameter.tensor.shape());
  }
  return shapes;
}

TEST(EmbeddedMlp, AppendsAnEmbeddingOfEachTokenToTheNumbers) {
  const auto net = build(MlpOptions{}, table(2, {5, 9}), 1);
  const Tensor numbers = random_tensor({4, 2}, DType::kFloat32, 1);
  const Tensor first = Tensor::from(std::vector<std::int64_t>{0, 4, 2, 2}, {4, 1});
  const Tensor second = Tensor::from(std::vector<std::int64_t>{8, 0, 1, 8}, {4, 1});
  const std::array inputs{numbers, first, second};
  const Tensor answer = net->forward(std::span<const Tensor>(inputs));
  const std::vector<nn::Parameter> parameters = net->parameters();
  const auto of = [&](const Tensor& tokens, std::size_t which) {
    return ops::flatten(ops::embedding(parameters[which].tensor, tokens));
  };
  const Tensor row = ops::cat({numbers, of(first, 0), of(second, 1)}, 1);
  const Tensor expected = ops::linear(row, parameters[2].tensor, parameters[3].tensor);
  EXPECT_EQ(values_of(answer), values_of(expected));
  ops::sum(ops::mul(answer, answer)).backward();
  for (const nn::Parameter& parameter : parameters) {
    EXPECT_THAT(values_of(parameter.tensor.grad()), ::testing::Contains(::testing::Ne(0))) << parameter.name;
  }
}

TEST(EmbeddedMlp, IsHalfAsWideAsThereAreCategoriesAndAtMostFifty) {
  using Named = std::pair<std::string, Shape>;
  EXPECT_THAT(parameters_of_mlp(table(4, {18, 300})),
              ::testing::ElementsAre(Named("embedding0.weight", {18, 9}), Named("embedding1.weight", {300, 50}),
                                     Named("hidden0_linear.weight", {3, 4 + 9 + 50}), Named("hidden0_linear.bias", {3}),
                                     Named("output.weight", {2, 3}), Named("output.bias", {2})));
}

TEST(EmbeddedMlp, LearnsFromTokensAlone) {
  const auto net = build(MlpOptions{.hidden = {3}}, table(0, {5}), 1);
  for (const std::int64_t samples : {2, 0}) {
    const std::array inputs{Tensor::zeros({samples, 0}, DType::kFloat32), Tensor::zeros({samples, 1}, DType::kInt64)};
    EXPECT_EQ(net->forward(std::span<const Tensor>(inputs)).shape(), (Shape{samples, 2}));
  }
}

TEST(EmbeddedMlp, TakesABatchWithoutSamples) {
  const auto net = build(MlpOptions{.hidden = {3}}, table(2, {5}), 1);
  const std::array inputs{Tensor::zeros({0, 2}, DType::kFloat32), Tensor::zeros({0, 1}, DType::kInt64)};
  ops::sum(net->forward(std::span<const Tensor>(inputs))).backward();
  for (const nn::Parameter& parameter : net->parameters()) {
    EXPECT_THAT(values_of(parameter.tensor.grad()), Each(0)) << parameter.name;
  }
}

// A category that no sample has keeps its first values.
TEST(EmbeddedMlp, StartsWithSmallEmbeddings) {
  const auto net = build(MlpOptions{}, table(1, {200}), 1);
  for (const double value : values_of(net->parameters()[0].tensor)) EXPECT_LT(std::abs(value), 0.6);
}

TEST(EmbeddedMlp, RefusesOtherInputsThanItTakes) {
  const auto net = build(MlpOptions{}, table(2, {5}), 1);
  EXPECT_THAT([&] { net->forward(Tensor::zeros({1, 2}, DType::kFloat32)); }, ThrowsMessage<Error>(HasSubstr("inputs")));
  ModelInput numbers = table(2, {});
  numbers.more_inputs = {{.shape = {3}}};
  EXPECT_THAT(
      [&] { build(MlpOptions{}, numbers, 1); },
      ThrowsMessage<FieldError>(HasSubstr("model.mlp: takes tokens beside its first input, but data.train has [3]")));
  ModelInput images = table(2, {5});
  images.sample_shape = {8, 8, 1};
  try {
    build(ConvnetOptions{}, images, 1);
    ADD_FAILURE() << "a convnet took tokens";
  } catch (const FieldError& error) {
    EXPECT_THAT(error.what(), HasSubstr("convnet takes one input, and the samples of data.train have 2"));
    EXPECT_THAT(error.advice(), HasSubstr("one_hot_up_to: 1024"));
  }
}

}  // namespace
}  // namespace lockstep::model_zoo
