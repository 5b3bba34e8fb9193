// SPDX-License-Identifier: Apache-2.0
#include "amp/autocast/operation_trace.h"

#include <gmock/gmock.h>

#include <thread>

#include "amp/autocast/autocast.h"
#include "runtime/autograd/grad_mode.h"
#include "runtime/autograd/node.h"
#include "runtime/nn/layer_scope.h"
#include "runtime/nn/layers.h"
#include "runtime/ops/ops.h"

namespace lockstep::amp {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Tensor ones(const Shape& shape, DType dtype = DType::kFloat32) {
  return ops::cast(Tensor::from(std::vector<float>(static_cast<std::size_t>(shape.numel()), 1.0f), shape), dtype);
}

std::vector<std::string> names(const std::vector<TracedOperation>& operations) {
  std::vector<std::string> result;
  for (const TracedOperation& operation : operations) result.push_back(operation.name);
  return result;
}

TEST(OperationTrace, NotesEveryOperationOfItsThreadWhileItLives) {
  const Tensor x = ones({2, 3});
  ops::activate(kernels::Activation::kRelu, x);
  std::vector<TracedOperation> operations;
  {
    OperationTrace trace;
    ops::add(x, x);
    ops::add(x, x);
    std::thread([&x] { ops::mul(x, x); }).join();
    operations = trace.operations();
  }
  EXPECT_EQ(OperationTrace::current(), nullptr);
  ops::mul(x, x);
  EXPECT_THAT(names(operations), ElementsAre("add", "add"));
}

TEST(OperationTrace, KnowsOperationsOnTensorsWithoutGradientToo) {
  const autograd::NoGrad no_grad;
  const Autocast autocast(DType::kFloat16);
  OperationTrace trace;
  ops::matmul(ones({2, 3}), ones({3, 2}));
  const auto operations = trace.operations();
  ASSERT_EQ(operations.size(), 1u);
  EXPECT_THAT(operations[0].inputs, ElementsAre(DType::kFloat32, DType::kFloat32));
  EXPECT_THAT(operations[0].results, ElementsAre(DType::kFloat16));
  EXPECT_EQ(operations[0].casts.size(), 2u);
  EXPECT_EQ(operations[0].casts[0].how, "cast");
}

TEST(OperationTrace, TellsWhichPolicyDecided) {
  const Tensor x = ones({2, 3});
  const Tensor half = ones({2, 3}, DType::kFloat16);
  const auto decided = [&](const std::function<void()>& run) {
    OperationTrace trace;
    run();
    return std::string(trace.operations().at(0).decided);
  };
  EXPECT_EQ(decided([&] { ops::softmax(half); }), "autocast off");
  EXPECT_EQ(decided([&] { ops::add(x, half); }), "promote");
  const Autocast autocast(DType::kFloat16);
  EXPECT_EQ(decided([&] { ops::softmax(half); }), "float32");
  EXPECT_EQ(decided([&] { ops::matmul(x, ops::reshape(x.detach(), {3, 2})); }), "none") << "reshape";
  EXPECT_EQ(decided([&] { ops::matmul(x, ones({3, 1}, DType::kFloat16)); }), "");
  EXPECT_EQ(decided([&] { ops::linear(x, x, {}); }), "lower precision");
  EXPECT_EQ(decided([&] { ops::activate(kernels::Activation::kRelu, x); }), "none");
}

TEST(OperationTrace, TellsACastFromACachedOne) {
  const Tensor weight = ones({3, 3});
  weight.set_requires_grad(true);
  autograd::meta_of(weight).name = "layer.weight";
  const Autocast autocast(DType::kBFloat16);
  OperationTrace trace;
  ops::linear(ones({2, 3}), weight, {});
  ops::linear(ones({2, 3}), weight, {});
  const auto operations = trace.operations();
  ASSERT_EQ(operations.size(), 2u);
  EXPECT_EQ(operations[0].casts.at(1).parameter, "layer.weight");
  EXPECT_EQ(operations[0].casts.at(1).how, "cast");
  EXPECT_EQ(operations[1].casts.at(1).how, "cached cast");
  EXPECT_EQ(operations[1].layer, "layer");
}

TEST(OperationTrace, KnowsACastThatStandsAloneAndOneWithinAnOperation) {
  const Tensor half = ones({2, 3}, DType::kFloat16);
  OperationTrace trace;
  ops::cast(half, DType::kFloat32);
  ops::mse(ones({2, 3}, DType::kFloat32), half, {});  // a target is read in x's dtype, outside autocast too
  const auto operations = trace.operations();
  EXPECT_THAT(names(operations), ElementsAre("cast", "mse"));
  EXPECT_THAT(operations[0].casts.size(), 1u);
  EXPECT_THAT(operations[1].inputs, ElementsAre(DType::kFloat32, DType::kFloat16));
  EXPECT_EQ(operations[1].casts.size(), 1u);
  EXPECT_THAT(operations[1].results, ElementsAre(DType::kFloat32));
}

TEST(OperationTrace, KnowsWhatAKernelWidensItself) {
  const Tensor logits = ones({2, 3}, DType::kFloat16);
  const Autocast autocast(DType::kFloat16);
  OperationTrace trace;
  ops::cross_entropy(logits, Tensor::from<std::int64_t>({0, 1}, {2}), {});
  const auto operations = trace.operations();
  ASSERT_EQ(operations.size(), 1u);
  EXPECT_EQ(operations[0].casts.at(0).how, "in the kernel");
  EXPECT_THAT(operations[0].results, ElementsAre(DType::kFloat32));

  ops::add(ones({2, 3}), logits);
  const TracedOperation sum = trace.operations().back();
  EXPECT_EQ(sum.name, "add");
  EXPECT_THAT(sum.inputs, ElementsAre(DType::kFloat32, DType::kFloat16));
  EXPECT_EQ(sum.casts.at(0).how, "in the kernel");
}

TEST(OperationTrace, TellsOperationsThatHaveNotAskedAndThoseThatAreNotRecorded) {
  const Tensor x = ones({2});
  OperationTrace trace;
  autograd::record(x.detach(), "an operation of a program", {x}, {});
  dtype_for(Op::kSoftmax, x);  // and then is made of others
  ops::add(x, x);
  const auto operations = trace.operations();
  EXPECT_THAT(names(operations), ElementsAre("an operation of a program", "softmax", "add"));
  EXPECT_EQ(operations[0].decided, "");
  EXPECT_THAT(operations[1].results, ElementsAre(DType::kFloat32));
}

TEST(OperationTrace, HasALineForEveryOperationWithoutAGradient) {
  const Tensor x = ones({2, 3});
  x.set_requires_grad(true);
  OperationTrace trace;
  const Tensor equal = ops::eq(x, x);
  ops::lt(x, 0);
  ops::argmax(x, 1);
  ops::argmax(x, 1);
  const auto operations = trace.operations();
  EXPECT_THAT(names(operations), ElementsAre("compare", "compare", "argmax", "argmax"));
  EXPECT_THAT(operations[0].inputs, ElementsAre(DType::kFloat32, DType::kFloat32));
  EXPECT_THAT(operations[0].results, ElementsAre(DType::kBool));
  EXPECT_FALSE(equal.requires_grad());
  EXPECT_TRUE(!equal.autograd_meta() || !equal.autograd_meta()->producer) << "a comparison keeps no graph";
}

TEST(OperationTrace, HasNoLineForWhatDoesNothing) {
  const Tensor x = ones({2, 3});
  OperationTrace trace;
  ops::sum_to(x, x.shape());
  ops::expand(x, x.shape());
  ops::dropout(x, 0, {}, 0);
  EXPECT_THAT(trace.operations(), IsEmpty());
}

TEST(OperationTrace, HasOneLineForAnOperationBesideTheOnesThatItRuns) {
  const Tensor x = ones({1, 2}), h = ones({1, 2});
  const ops::CellParameters parameters{ones({8, 2}), ones({8, 2}), ones({8}), ones({8})};
  const Autocast autocast(DType::kFloat16);
  OperationTrace trace;
  ops::lstm_cell(x, {h, h}, parameters);
  ops::lstm_cell(x, {h, h}, parameters);
  const auto count = [](const std::vector<TracedOperation>& operations, const std::string& name) {
    const std::vector<std::string> all = names(operations);
    return std::ranges::count(all, name);
  };
  const auto operations = trace.operations();
  EXPECT_EQ(count(operations, "lstm_cell"), 2);
  EXPECT_EQ(count(operations, "linear"), 4);
  EXPECT_EQ(operations[0].name, "lstm_cell");
  EXPECT_EQ(operations[0].inputs.size(), 7u);
  EXPECT_EQ(operations[1].name, "linear");
}

TEST(OperationTrace, KnowsTheResultOfAnOperationThatRunsOthersBefore) {
  const Tensor x = ones({2, 3, 2});
  OperationTrace trace;
  ops::var(x, {0, 2});
  const auto operations = trace.operations();
  EXPECT_THAT(names(operations), ElementsAre("var", "permute", "reshape", "reshape"));
  EXPECT_EQ(operations[0].decided, "none");
  EXPECT_THAT(operations[0].results, ElementsAre(DType::kFloat32));
}

TEST(OperationTrace, CountsAnOperationToTheModuleThatRuns) {
  nn::Sequential model;
  model.add<nn::Linear>("first", 3, 3);
  model.add<nn::Activation>("relu", kernels::Activation::kRelu);
  nn::initialize(model, 1);
  std::vector<std::pair<const nn::Module*, std::string>> paths;
  model.for_each([&](const std::string& path, nn::Module& module) { paths.emplace_back(&module, path); });
  OperationTrace trace([&paths] {
    for (const auto& [module, path] : paths) {
      if (module == nn::LayerScope::current()) return path;
    }
    return std::string();
  });
  model.forward(ones({2, 3}));
  const auto operations = trace.operations();
  ASSERT_THAT(names(operations), ElementsAre("linear", "relu"));
  EXPECT_EQ(operations[0].layer, "first");
  EXPECT_EQ(operations[1].layer, "relu");
  EXPECT_EQ(nn::LayerScope::current(), nullptr);
}

}  // namespace
}  // namespace lockstep::amp
