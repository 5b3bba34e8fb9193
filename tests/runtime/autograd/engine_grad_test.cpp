// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "runtime/autograd/engine.h"
#include "runtime/ops/ops.h"
#include "tests/runtime/autograd/graph.h"

namespace lockstep::autograd {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using testing::give_slot;
using ::testing::HasSubstr;
using testing::leaf;
using ::testing::ThrowsMessage;
using testing::values_of;

/// The gradient of f at x, itself part of the graph.
Tensor differentiable_gradient(const Tensor& output, const Tensor& x) {
  return grad(output, {x}, {}, {.create_graph = true}).front();
}

/// d/dx of the sum of squares of df/dx: zero unless the backward of f was recorded.
std::vector<double> gradient_of_squared_gradient(const std::function<Tensor(const Tensor&)>& f, const Tensor& x) {
  const Tensor first = differentiable_gradient(f(x), x);
  return values_of(grad(ops::sum(ops::mul(first, first)), {x}).front());
}

TEST(Grad, LeavesEveryLeafAlone) {
  const Tensor x = leaf({2}), w = leaf({3});
  const std::vector<Tensor> grads = grad(ops::sum(ops::mul(x, w)), {w, x});
  EXPECT_EQ(grads[0].item(), 2);
  EXPECT_EQ(grads[1].item(), 3);
  EXPECT_FALSE(x.grad().defined());
  EXPECT_FALSE(w.grad().defined());
}

TEST(Grad, LeavesTheArenasSlotsAlone) {
  const Tensor x = Tensor::from<float>({1, 2}, {1, 2}), w = Tensor::from<float>({3, 4}, {1, 2});
  w.set_requires_grad(true);
  const Tensor slot = give_slot(w);
  const Tensor found = grad(ops::sum(ops::linear(x, w, {})), {w}).front();
  EXPECT_THAT(values_of(found), ElementsAre(1, 2));
  EXPECT_FALSE(found.aliases(slot));
  EXPECT_FALSE(w.grad().defined());
  EXPECT_THAT(values_of(slot), ElementsAre(0, 0));
}

TEST(Grad, OfIntermediateResultsAndTheOutputItself) {
  const Tensor x = leaf({2});
  const Tensor y = ops::mul(x, x);
  const Tensor z = ops::scale(y, 3);
  const std::vector<Tensor> grads = grad(z, {y, z, x});
  EXPECT_EQ(grads[0].item(), 3);
  EXPECT_EQ(grads[1].item(), 1);
  EXPECT_EQ(grads[2].item(), 12);
}

TEST(Grad, OfWhatTheOutputDoesNotDependOnIsAnErrorUnlessItIsAllowed) {
  const Tensor x = leaf({2}), other = leaf({3});
  EXPECT_THAT(
      [&] {
        grad(ops::sum(x), {x, other});
      },
      ThrowsMessage<UsageError>(HasSubstr("no output of grad() depends on its input 1")));
  meta_of(other).name = "dense.weight";
  EXPECT_THAT([&] { grad(ops::sum(x), {other}); }, ThrowsMessage<UsageError>(HasSubstr("dense.weight")));
  const std::vector<Tensor> grads = grad(ops::sum(x), {x, other}, {}, {.allow_unused = true});
  EXPECT_EQ(grads[0].item(), 1);
  EXPECT_FALSE(grads[1].defined());
  EXPECT_THAT([&] { grad(ops::sum(x), {other.detach()}); }, ThrowsMessage<UsageError>(HasSubstr("which needs none")));
  EXPECT_TRUE(grad(ops::sum(x), {}).empty());
}

TEST(Grad, RunsOnlyWhatLeadsToAnInput) {
  const Tensor x = leaf({2}), w = leaf({3});
  int ran = 0;
  const Tensor other = testing::probe(ops::scale(w, 2), [&ran] { ++ran; });
  const Tensor y = ops::mul(testing::probe(x, [&ran] { ++ran; }), other);
  EXPECT_EQ(grad(y, {x}).front().item(), 6);
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(grad(other, {w}).front().item(), 2);  // its operations kept what they need
}

TEST(Grad, NeedsNoOperationThatAnotherPassHasUsedUp) {
  const Tensor x = leaf({2, 1}), y = leaf({3, 4}), h = ops::exp(x);
  ops::sum(h).backward();
  const Tensor product = ops::sum(ops::mul(h, y));
  EXPECT_EQ(values_of(grad(product, {y}, {}, {.retain_graph = true}).front()), values_of(h));
  EXPECT_THAT([&] { grad(product, {x}); }, ThrowsMessage<UsageError>(HasSubstr("'exp' a second time")));
}

TEST(Grad, OfOneInputNamedTwiceIsTheSameTwice) {
  const Tensor x = leaf({2});
  const std::vector<Tensor> grads = grad(ops::mul(x, x), {x, x});
  EXPECT_EQ(grads[0].item(), 4);
  EXPECT_EQ(grads[1].item(), 4);
}

TEST(CreateGraph, GivesSecondDerivatives) {
  const Tensor x = leaf({2, -3});
  // f = sum x^3, so sum f'^2 = sum 9 x^4 and its derivative is 36 x^3.
  EXPECT_THAT(gradient_of_squared_gradient([](const Tensor& t) { return ops::sum(ops::mul(ops::mul(t, t), t)); }, x),
              ElementsAre(DoubleEq(36 * 8), DoubleEq(36 * -27)));
  // f = mean (2 x^2 + x) over two elements: f' = 2 x + 1/2.
  EXPECT_THAT(gradient_of_squared_gradient(
                  [](const Tensor& t) { return ops::mean(ops::add(ops::scale(ops::mul(t, t), 2), t)); }, x),
              ElementsAre(DoubleEq(4 * (2 * 2 + 0.5)), DoubleEq(4 * (2 * -3 + 0.5))));
  // f = sum reshape(x)^2: f' = 2 x.
  EXPECT_THAT(gradient_of_squared_gradient(
                  [](const Tensor& t) {
                    const Tensor column = ops::reshape(t, {2, 1});
                    return ops::sum(ops::mul(column, column));
                  },
                  x),
              ElementsAre(DoubleEq(16), DoubleEq(-24)));
  // f = (sum x)^2: f' = 2 sum x for each element, so the sum of squares is 8 (sum x)^2.
  EXPECT_THAT(gradient_of_squared_gradient(
                  [](const Tensor& t) {
                    const Tensor total = ops::sum(t);
                    return ops::mul(total, total);
                  },
                  x),
              ElementsAre(DoubleEq(-16), DoubleEq(-16)));
}

TEST(CreateGraph, GivesThirdDerivatives) {
  const Tensor x = leaf({2});
  const Tensor square = ops::mul(x, x);
  const Tensor first = differentiable_gradient(ops::mul(square, square), x);
  const Tensor second = differentiable_gradient(first, x);
  const Tensor third = differentiable_gradient(second, x);
  EXPECT_EQ(first.item(), 4 * 8);
  EXPECT_EQ(second.item(), 12 * 4);
  EXPECT_EQ(third.item(), 24 * 2);
}

TEST(CreateGraph, KeepsTheFirstGraph) {
  const Tensor x = leaf({2});
  const Tensor y = ops::mul(x, x);
  differentiable_gradient(y, x);
  y.backward();
  EXPECT_EQ(x.grad().item(), 4);
}

TEST(CreateGraph, BackwardLeavesADifferentiableGradient) {
  const Tensor x = leaf({2});
  backward(ops::mul(x, x), {}, {.create_graph = true});
  EXPECT_EQ(x.grad().item(), 4);
  EXPECT_EQ(grad(x.grad(), {x}).front().item(), 2);
  meta_of(x).grad = {};  // breaks the cycle that the header warns of
}

/// x^2 by kernels alone.
Tensor square_once(const Tensor& x) {
  const Tensor y = ops::mul(x.detach(), x.detach());
  record(y, "square_once", {x}, {.fused = [x = SavedTensor(x)](const Tensor& dy, const BackwardContext& context) {
           return std::vector<Tensor>{ops::scale(ops::mul(dy, context.saved(x)), 2)};
         }});
  return y;
}

TEST(CreateGraph, ThroughAnOperationWithoutSecondDerivativesIsAnErrorThatNamesIt) {
  const Tensor x = leaf({0.5});
  const Tensor first = differentiable_gradient(ops::sum(ops::tanh(square_once(ops::relu(x)))), x);
  EXPECT_THAT([&] { grad(ops::sum(ops::mul(first, first)), {x}); },
              ThrowsMessage<UsageError>(HasSubstr("the backward of 'square_once' cannot be differentiated again")));
  // What leads around it has its second derivatives all the same.
  const Tensor w = leaf({2});
  const Tensor beside = differentiable_gradient(ops::add(ops::mul(ops::mul(w, w), w), square_once(x)), w);
  EXPECT_EQ(grad(beside, {w}).front().item(), 12);
}

}  // namespace
}  // namespace lockstep::autograd
