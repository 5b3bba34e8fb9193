// SPDX-License-Identifier: Apache-2.0
// Multi-head attention, its past keys and values, positions and feed-forward layers.
#include "runtime/nn/attention.h"

#include <gmock/gmock.h>

#include "runtime/autograd/grad_mode.h"
#include "runtime/base/error.h"
#include "runtime/nn/feed_forward.h"
#include "runtime/nn/normalization.h"
#include "runtime/nn/positions.h"
#include "runtime/nn/step_context.h"
#include "runtime/nn/transformer_block.h"
#include "runtime/ops/ops.h"
#include "tests/runtime/kernels/tensors.h"
#include "tests/support/devices.h"

namespace lockstep::nn {
namespace {

using kernels::testing::expect_close;
using kernels::testing::random_tensor;
using kernels::testing::values_of;
using lockstep::devices::device;

constexpr std::int64_t kWidth = 12, kLength = 7;
constexpr kernels::testing::Bounds kRounding{.relative = 1e-5, .absolute = 1e-6};

Tensor sequence(std::int64_t samples = 2) {
  return random_tensor({samples, kLength, kWidth}, DType::kFloat32, 1).to(device());
}

/// On the device under test, with initial weights.
struct Layer {
  explicit Layer(const AttentionOptions& options) : attention(options) {
    initialize(attention, 1);
    attention.to(device());
  }
  MultiHeadAttention attention;
};

std::vector<std::pair<std::string, Shape>> parameters_of(const AttentionOptions& options) {
  std::vector<std::pair<std::string, Shape>> all;
  for (const Parameter& parameter : MultiHeadAttention(options).parameters()) {
    all.emplace_back(parameter.name, parameter.tensor.shape());
  }
  return all;
}

TEST(MultiHeadAttention, HasTheParametersOfItsHeads) {
  using testing::ElementsAre;
  using testing::Pair;
  EXPECT_THAT(parameters_of({.width = 12, .heads = 3}),
              ElementsAre(Pair("input.weight", Shape{36, 12}), Pair("input.bias", Shape{36}),
                          Pair("output.weight", Shape{12, 12}), Pair("output.bias", Shape{12})));
  EXPECT_THAT(parameters_of({.width = 12, .heads = 4, .kv_heads = 2, .channels = 5, .input_bias = false}),
              ElementsAre(Pair("input.weight", Shape{40, 12}), Pair("output.weight", Shape{12, 20}),
                          Pair("output.bias", Shape{12})));
}

/// The same by operations on each head alone.
TEST(MultiHeadAttention, IsThatOfEachHeadWithTheKeysThatItShares) {
  Layer layer({.width = kWidth, .heads = 4, .kv_heads = 2, .causal = true});
  const Tensor x = sequence();
  const std::vector<Parameter> parameters = layer.attention.parameters();
  const Tensor all = ops::linear(x, parameters[0].tensor, parameters[1].tensor);
  const std::vector<Tensor> parts = ops::split(all, 3, -1);  // 4 heads of queries, 2 of keys, 2 of values
  std::vector<Tensor> heads;
  for (std::size_t head = 0; head < 4; ++head) {
    heads.push_back(
        ops::scaled_dot_product_attention(parts[head], parts[4 + head / 2], parts[6 + head / 2], {.causal = true}));
  }
  const Tensor y = ops::linear(ops::cat(heads, -1), parameters[2].tensor, parameters[3].tensor);
  expect_close(layer.attention.forward(x), y, kRounding);
}

TEST(MultiHeadAttention, WithItsPastIsThatOfTheWholeSequence) {
  const autograd::NoGrad no_grad;
  for (const bool causal : {true, false}) {
    for (const bool rotary : {true, false}) {
      AttentionOptions options{.width = kWidth, .heads = 2, .kv_heads = 1, .causal = causal};
      if (rotary) options.rotary = std::make_shared<RotaryPositions>(kLength, kWidth / 2, 100);
      Layer layer(options);
      const Tensor x = sequence(), whole = layer.attention.forward(x);
      for (const std::vector<std::int64_t>& parts :
           {std::vector<std::int64_t>{1, 1, 1, 1, 1, 1, 1}, {3, 1, 2, 1}, {7}}) {
        KeyValues past;
        std::int64_t first = 0;
        for (const std::int64_t length : parts) {
          const Tensor y = layer.attention.forward(ops::slice(x, 1, first, first + length), &past);
          first += length;
          EXPECT_EQ(past.length(), first);
          // Without causality the last queries alone see what the whole sequence's see.
          if (causal || first == kLength) expect_close(y, ops::slice(whole, 1, first - length, first), kRounding);
        }
      }
    }
  }
}

TEST(MultiHeadAttention, KeepsNoPastWhereGradientsAreRecorded) {
  Layer layer({.width = kWidth, .heads = 2});
  KeyValues past;
  EXPECT_THROW(layer.attention.forward(sequence(), &past), UsageError);
  EXPECT_EQ(past.length(), 0);
}

TEST(MultiHeadAttention, DropsTheSameOfASampleHoweverTheBatchIsSplit) {
  Layer layer({.width = kWidth, .heads = 2, .dropout = 0.5});
  EXPECT_TRUE(layer.attention.draws_random_numbers());
  const Tensor x = sequence(4);
  const auto run = [&](const Tensor& samples, std::int64_t first) {
    const StepContext context(3, first);
    return layer.attention.forward(samples);
  };
  const Tensor whole = run(x, 5);
  expect_close(run(x.rows(0, 1), 5), whole.rows(0, 1), kRounding);
  expect_close(run(x.rows(1, 4), 6), whole.rows(1, 4), kRounding);
  {
    const StepContext context(3, 5);
    layer.attention.forward(x);
    EXPECT_NE(values_of(layer.attention.forward(x)), values_of(whole));  // the second call of a context
  }
  layer.attention.train(false);
  EXPECT_FALSE(layer.attention.draws_random_numbers());
  EXPECT_EQ(values_of(run(x, 5)), values_of(run(x, 9)));
}

TEST(MultiHeadAttention, SeesOnlyWhatAMaskLeaves) {
  Layer layer({.width = kWidth, .heads = 2});
  const Tensor x = sequence(2);
  std::vector<bool> seen(2 * kLength, true);
  for (std::int64_t at = 4; at < kLength; ++at) seen[static_cast<std::size_t>(kLength + at)] = false;
  Tensor mask = Tensor::empty({2, 1, 1, kLength}, DType::kBool);
  std::ranges::copy(seen, mask.mutable_as<bool>().begin());
  const Tensor y = layer.attention.forward(x, mask.to(device()));
  expect_close(y.rows(0, 1), layer.attention.forward(x).rows(0, 1), kRounding);
  const Tensor second = x.rows(1, 2);
  expect_close(ops::slice(y.rows(1, 2), 1, 0, 4), layer.attention.forward(ops::slice(second, 1, 0, 4)), kRounding);
}

TEST(MultiHeadAttention, RefusesHeadsThatDivideNothing) {
  for (const AttentionOptions& options :
       {AttentionOptions{.width = 10, .heads = 4}, AttentionOptions{.width = 12, .heads = 4, .kv_heads = 3},
        AttentionOptions{.width = 12, .heads = 0}, AttentionOptions{.width = 0}}) {
    EXPECT_THROW(MultiHeadAttention{options}, ShapeError);
  }
}

TEST(RotaryPositions, GoOnFromTheFirst) {
  RotaryPositions positions(kLength, 4, 100);
  const Tensor x = random_tensor({2, kLength, 4}, DType::kFloat32, 1).to(device());
  const Tensor whole = positions.apply(x, 0);
  EXPECT_EQ(values_of(positions.apply(ops::slice(x, 1, 3, 5), 3)), values_of(ops::slice(whole, 1, 3, 5)));
  EXPECT_THROW(positions.apply(x, 1), ShapeError);
  EXPECT_THROW(RotaryPositions(kLength, 3, 100), UsageError);
}

TEST(LearnedPositions, GoOnFromTheFirst) {
  LearnedPositions positions(kLength, kWidth);
  initialize(positions, 1);
  positions.to(device());
  const Tensor x = sequence(), whole = positions.forward(x);
  EXPECT_EQ(values_of(positions.forward(ops::slice(x, 1, 3, 5), 3)), values_of(ops::slice(whole, 1, 3, 5)));
  EXPECT_THROW(positions.forward(x, 1), ShapeError);
}

TEST(TransformerBlock, NormalisesBeforeItsBranchesOrBehindTheirSums) {
  const Tensor x = sequence();
  for (const NormPlace place : {NormPlace::kBefore, NormPlace::kBehind}) {
    TransformerBlock block(
        {.attention_norm = std::make_unique<LayerNorm>(Shape{kWidth}),
         .attention = std::make_unique<MultiHeadAttention>(AttentionOptions{.width = kWidth, .heads = 2}),
         .feed_forward_norm = std::make_unique<LayerNorm>(Shape{kWidth}),
         .feed_forward = std::make_unique<FeedForward>(kWidth, 2 * kWidth),
         .norm_place = place});
    MultiHeadAttention attention({.width = kWidth, .heads = 2});
    FeedForward feed_forward(kWidth, 2 * kWidth);
    initialize(block, 1);
    block.to(device());
    const std::vector<Parameter> all = block.parameters();
    const auto take = [&](Module& part, std::size_t first) {
      part.to(device());
      for (const Parameter& parameter : part.parameters()) parameter.tensor.copy_from(all[first++].tensor.detach());
    };
    take(attention, 2);
    take(feed_forward, 8);
    // The gains are ones and the biases zeros.
    const auto norm = [](const Tensor& y) { return ops::layer_norm(y, {kWidth}, {}, {}, 1e-5); };
    const bool before = place == NormPlace::kBefore;
    const Tensor sum = ops::add(x, attention.forward(before ? norm(x) : x));
    const Tensor y = before ? sum : norm(sum);
    const Tensor end = ops::add(y, feed_forward.forward(before ? norm(y) : y));
    expect_close(block.forward(x), before ? end : norm(end), kRounding);
  }
}

TEST(FeedForward, DropsBetweenItsLayers) {
  FeedForward layer(4, 6, {.activation = kernels::Activation::kGelu, .dropout = 0.5});
  initialize(layer, 1);
  layer.to(device());
  const Tensor x = random_tensor({3, 4}, DType::kFloat32, 2).to(device());
  EXPECT_NE(values_of(layer.forward(x)), values_of(layer.forward(x)));
  layer.train(false);
  const std::vector<Parameter> p = layer.parameters();
  expect_close(layer.forward(x),
               ops::linear(ops::gelu(ops::linear(x, p[0].tensor, p[1].tensor)), p[2].tensor, p[3].tensor), kRounding);
}

TEST(FeedForward, IsTwoLinearLayersOrThreeWithAGate) {
  FeedForward plain(4, 6);
  GatedFeedForward gated(4, 6);
  for (Module* module : std::initializer_list<Module*>{&plain, &gated}) {
    initialize(*module, 1);
    module->to(device());
  }
  const Tensor x = random_tensor({3, 4}, DType::kFloat32, 2).to(device());
  const std::vector<Parameter> p = plain.parameters(), g = gated.parameters();
  expect_close(plain.forward(x),
               ops::linear(ops::gelu_tanh(ops::linear(x, p[0].tensor, p[1].tensor)), p[2].tensor, p[3].tensor),
               kRounding);
  ASSERT_EQ(g.size(), 3u);
  expect_close(gated.forward(x),
               ops::linear(ops::mul(ops::silu(ops::linear(x, g[0].tensor, {})), ops::linear(x, g[1].tensor, {})),
                           g[2].tensor, {}),
               kRounding);
}

}  // namespace
}  // namespace lockstep::nn
