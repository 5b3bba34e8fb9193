// SPDX-License-Identifier: Apache-2.0
#include "runtime/nn/recurrent_layers.h"

#include <gmock/gmock.h>

#include "amp/autocast/autocast.h"
#include "runtime/autograd/engine.h"
#include "runtime/base/error.h"
#include "runtime/ops/ops.h"
#include "tests/runtime/kernels/tensors.h"

namespace lockstep::nn {
namespace {

using kernels::testing::random_tensor;
using kernels::testing::values_of;
using ::testing::Each;

Tensor lengths_of(const std::vector<std::int64_t>& lengths) {
  return Tensor::from(lengths, {static_cast<std::int64_t>(lengths.size())});
}

TEST(RecurrentLayers, GiveOutputsAndTheStateOfEachLayerAndDirection) {
  Lstm lstm(3, 5, {.layers = 2, .bidirectional = true});
  const Tensor x = random_tensor({2, 4, 3}, DType::kFloat32, 1);
  const SequenceOutput output = lstm.forward(x, {});
  EXPECT_EQ(output.y.shape(), (Shape{2, 4, 10}));
  EXPECT_EQ(output.state.h.shape(), (Shape{4, 2, 5}));
  EXPECT_EQ(output.state.c.shape(), (Shape{4, 2, 5}));
  EXPECT_EQ(values_of(lstm.forward(x)), values_of(output.y));
  // The last layer's forward direction ends behind the last element, its backward one behind the first.
  EXPECT_EQ(values_of(output.state.h[2]), values_of(output.y(ops::Slice{}, -1, ops::Slice{0, 5})));
  EXPECT_EQ(values_of(output.state.h[3]), values_of(output.y(ops::Slice{}, 0, ops::Slice{5})));
  EXPECT_FALSE(Gru(3, 5).forward(x, {}).state.c.defined());
}

TEST(RecurrentLayers, ASequenceInTwoPartsIsTheWholeOne) {
  Gru gru(3, 4, {.layers = 2});
  const Tensor x = random_tensor({2, 6, 3}, DType::kFloat32, 1);
  const SequenceOutput first = gru.forward(x(ops::Slice{}, ops::Slice{0, 2}), {});
  const SequenceOutput second = gru.forward(x(ops::Slice{}, ops::Slice{2}), {.state = first.state});
  const SequenceOutput whole = gru.forward(x, {});
  EXPECT_EQ(values_of(ops::cat({first.y, second.y}, 1)), values_of(whole.y));
  EXPECT_EQ(values_of(second.state.h), values_of(whole.state.h));
}

TEST(RecurrentLayers, WhatLiesBehindALengthHasNoInfluence) {
  Lstm lstm(3, 4, {.layers = 2, .bidirectional = true});
  const Tensor x = random_tensor({2, 5, 3}, DType::kFloat32, 1), other = random_tensor({2, 5, 3}, DType::kFloat32, 2);
  const Tensor ends = ops::cat({x(ops::Slice{}, ops::Slice{0, 3}), other(ops::Slice{}, ops::Slice{3})}, 1);
  const SequenceOptions three{.lengths = lengths_of({3, 3})};
  const SequenceOutput found = lstm.forward(ends, three), cut = lstm.forward(x(ops::Slice{}, ops::Slice{0, 3}), {});
  EXPECT_EQ(values_of(found.y(ops::Slice{}, ops::Slice{0, 3})), values_of(cut.y));
  EXPECT_THAT(values_of(found.y(ops::Slice{}, ops::Slice{3})), Each(0));
  EXPECT_EQ(values_of(found.state.h), values_of(cut.state.h));
  EXPECT_EQ(values_of(found.state.c), values_of(cut.state.c));
  EXPECT_THAT(values_of(lstm.forward(x, {.lengths = lengths_of({0, 0})}).state.h), Each(0));
}

// A rank may have no sample of a step.
TEST(RecurrentLayers, ReadNoSequencesToo) {
  Lstm lstm(3, 4, {.layers = 2, .bidirectional = true});
  const Tensor x = Tensor::zeros({0, 5, 3}, DType::kFloat32);
  const SequenceOutput output = lstm.forward(x, {.lengths = Tensor::zeros({0}, DType::kInt64)});
  EXPECT_EQ(output.y.shape(), (Shape{0, 5, 8}));
  EXPECT_EQ(output.state.c.shape(), (Shape{4, 0, 4}));
  ops::sum(output.y).backward();
  for (const Parameter& parameter : lstm.parameters()) {
    SCOPED_TRACE(parameter.name);
    EXPECT_THAT(values_of(parameter.tensor.grad()), Each(0));
  }
}

TEST(RecurrentLayers, RunInTheComputeDtypeUnderAutocast) {
  Gru gru(3, 4, {.bidirectional = true});
  const Tensor x = random_tensor({2, 3, 3}, DType::kFloat32, 1);
  const amp::Autocast autocast(DType::kBFloat16);
  const SequenceOutput output = gru.forward(x, {.lengths = lengths_of({3, 2})});
  EXPECT_EQ(output.y.dtype(), DType::kBFloat16);
  EXPECT_EQ(output.state.h.dtype(), DType::kBFloat16);
}

TEST(RecurrentLayers, DropOutputsBetweenLayersWhileTraining) {
  Rnn rnn(3, 64, {.layers = 2, .dropout = 0.5});
  const Tensor x = random_tensor({2, 3, 3}, DType::kFloat32, 1);
  EXPECT_NE(values_of(rnn.forward(x)), values_of(rnn.forward(x)));
  rnn.train(false);
  EXPECT_EQ(values_of(rnn.forward(x)), values_of(rnn.forward(x)));
}

TEST(RecurrentLayers, RefuseWhatIsNoSequence) {
  Lstm lstm(3, 4);
  const Tensor x = Tensor::zeros({2, 5, 3}, DType::kFloat32);
  EXPECT_THROW((void)lstm.forward(Tensor::zeros({2, 3}, DType::kFloat32)), ShapeError);
  EXPECT_THROW((void)lstm.forward(Tensor::zeros({2, 0, 3}, DType::kFloat32)), ShapeError);
  EXPECT_THROW((void)lstm.forward(Tensor::zeros({2, 5, 4}, DType::kFloat32)), ShapeError);
  EXPECT_THROW((void)lstm.forward(Tensor()), UsageError);
  EXPECT_THROW((void)lstm.forward(x, {.lengths = lengths_of({1})}), ShapeError);
  EXPECT_THROW((void)lstm.forward(x, {.lengths = lengths_of({1, 6})}), UsageError);
  EXPECT_THROW((void)lstm.forward(x, {.lengths = lengths_of({-1, 5})}), UsageError);
  EXPECT_THROW((void)lstm.forward(x, {.lengths = Tensor::zeros({2}, DType::kInt32)}), ShapeError);
  const Tensor of_two = Tensor::zeros({2, 2, 4}, DType::kFloat32);
  EXPECT_THROW((void)lstm.forward(x, {.state = {.h = of_two, .c = of_two}}), ShapeError) << "of two layers";
  const Tensor state = Tensor::zeros({1, 2, 4}, DType::kFloat32);
  EXPECT_THROW((void)lstm.forward(x, {.state = {.h = state}}), UsageError) << "no c";
  EXPECT_THROW((void)lstm.forward(x, {.state = {.c = state}}), UsageError) << "no h";
  EXPECT_THROW((void)Gru(3, 4).forward(x, {.state = {.h = state, .c = state}}), UsageError) << "a GRU has no c";
  EXPECT_THROW(Lstm(3, 4, {.layers = 0}), UsageError);
  EXPECT_THROW(Lstm(3, 4, {.dropout = 0.5}), UsageError);
  EXPECT_THROW(Lstm(3, 4, {.layers = 2, .dropout = 1}), UsageError);
}

}  // namespace
}  // namespace lockstep::nn
