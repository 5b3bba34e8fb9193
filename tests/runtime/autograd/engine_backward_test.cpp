// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <array>
#include <string>

#include "runtime/autograd/engine.h"
#include "runtime/autograd/grad_mode.h"
#include "runtime/ops/ops.h"
#include "tests/runtime/autograd/graph.h"

namespace lockstep::autograd {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::leaf;
using testing::probe;
using ::testing::ThrowsMessage;
using testing::values_of;

TEST(Backward, SharedSubgraphsAreWalkedOnceWithTheSumOfTheirGradients) {
  const Tensor x = leaf({3});
  int walks = 0;
  const Tensor shared = probe(ops::mul(x, x), [&walks] { ++walks; });
  ops::sum(ops::add(ops::mul(shared, shared), shared)).backward();  // x^4 + x^2
  EXPECT_EQ(walks, 1);
  EXPECT_THAT(values_of(x.grad()), ElementsAre(DoubleEq(4 * 27 + 2 * 3)));
}

TEST(Backward, ALeafUsedSeveralTimesGetsTheSumOfItsUses) {
  const Tensor x = leaf({2, -1});
  ops::sum(ops::add(ops::add(ops::mul(x, x), x), ops::scale(x, 5))).backward();
  EXPECT_THAT(values_of(x.grad()), ElementsAre(2 * 2 + 6, 2 * -1 + 6));
}

TEST(Backward, GradientsOfSeveralPassesAddUp) {
  const Tensor x = leaf({2, -1});
  for (int pass = 0; pass < 3; ++pass) ops::sum(ops::scale(x, 5)).backward();
  EXPECT_THAT(values_of(x.grad()), ElementsAre(15, 15));
}

TEST(Backward, OneGradientSharedByTwoLeavesIsNotSharedMemory) {
  const Tensor x = leaf({1}), y = leaf({1});
  ops::sum(ops::add(x, y)).backward();
  EXPECT_FALSE(x.grad().aliases(y.grad()));
  ops::sum(x).backward();
  EXPECT_EQ(x.grad().item(), 2);
  EXPECT_EQ(y.grad().item(), 1);
}

TEST(Backward, RunsInTheReverseOrderOfCreation) {
  const Tensor x = leaf({1});
  std::string order;
  const auto named = [&order](const Tensor& input, char name) {
    return probe(input, [&order, name] { order += name; });
  };
  const Tensor a = named(x, 'a');
  const Tensor b = named(a, 'b'), c = named(a, 'c'), d = named(b, 'd');
  ops::sum(ops::add(ops::add(d, c), x)).backward();
  EXPECT_EQ(order, "dcba");
}

TEST(Backward, AnUndefinedGradientLeavesTheRestOfItsBranchAlone) {
  const Tensor x = leaf({1});
  const Tensor y = x.detach();
  record(y, "constant", {x}, {.fused = [](const Tensor&, const BackwardContext&) { return std::vector<Tensor>(1); }});
  ops::sum(ops::add(ops::scale(y, 2), ops::scale(x, 3))).backward();
  EXPECT_EQ(x.grad().item(), 3);
}

TEST(Backward, OfALeafItselfIsOne) {
  const Tensor x = leaf({7});
  x.backward();
  EXPECT_EQ(x.grad().item(), 1);
}

TEST(Backward, TakesAGradientForAnOutputOfAnyShape) {
  const Tensor x = leaf({2, -1});
  backward(ops::mul(x, x), Tensor::from<double>({10, 100}, {2}));
  EXPECT_THAT(values_of(x.grad()), ElementsAre(40, -200));
}

TEST(Backward, RefusesWhatItCannotStartFrom) {
  const Tensor x = leaf({1, 2});
  const Tensor y = ops::scale(x, 2);
  EXPECT_THAT([&] { y.backward(); }, ThrowsMessage<ShapeError>(HasSubstr("needs a scalar, not float64 [2]")));
  EXPECT_THAT([&] { backward(y, Tensor::from<double>({1}, {1})); },
              ThrowsMessage<ShapeError>(HasSubstr("not float64 [1]")));
  EXPECT_THAT(
      [&] {
        backward(y, Tensor::from<float>({1, 1}, {2}));
      },
      ThrowsMessage<ShapeError>(HasSubstr("not float32 [2]")));
  EXPECT_THAT([] { Tensor::from<double>({1}, {}).backward(); },
              ThrowsMessage<UsageError>(HasSubstr("no recorded operation")));
  EXPECT_THROW(backward(Tensor()), UsageError);
}

TEST(Backward, RefusesAWrongNumberOfGradients) {
  const Tensor x = leaf({1});
  const Tensor y = x.detach();
  record(y, "broken", {x}, {.fused = [](const Tensor&, const BackwardContext&) { return std::vector<Tensor>(2); }});
  EXPECT_THAT([&] { y.backward(); }, ThrowsMessage<UsageError>(HasSubstr("'broken' returned 2 gradients for 1")));
}

TEST(Backward, TwiceThroughOneGraphIsAnErrorThatNamesTheOperation) {
  const Tensor x = leaf({3});
  const Tensor loss = ops::gelu(x);
  loss.backward();
  EXPECT_THAT([&] { loss.backward(); }, ThrowsMessage<UsageError>(HasSubstr("'gelu' a second time")));
}

TEST(Backward, IntoAWalkedSubgraphTouchesNoLeaf) {
  const Tensor x = leaf({3}), w = leaf({2});
  const Tensor shared = ops::gelu(x);
  ops::sum(shared).backward();
  const Tensor other = ops::sum(ops::mul(shared, w));
  EXPECT_THROW(other.backward(), UsageError);
  EXPECT_FALSE(w.grad().defined());
}

TEST(Backward, RetainGraphAllowsAnotherWalk) {
  const Tensor x = leaf({3});
  const Tensor loss = ops::mul(x, x);
  backward(loss, {}, {.retain_graph = true});
  loss.backward();
  EXPECT_EQ(x.grad().item(), 12);
  EXPECT_THROW(loss.backward(), UsageError);
}

TEST(Backward, AnExceptionLeavesTheThreadAsItWas) {
  const Tensor x = leaf({3});
  const Tensor y = probe(x, [] { throw UsageError("stop"); });
  EXPECT_THROW(ops::sum(y).backward(), UsageError);
  EXPECT_TRUE(grad_enabled());
  EXPECT_THROW(after_backward([] {}), UsageError);
  ops::sum(x).backward();
  EXPECT_EQ(x.grad().item(), 1);
}

TEST(NoGrad, RecordsNothingInItsScope) {
  const Tensor x = leaf({3});
  {
    const NoGrad no_grad;
    EXPECT_FALSE(ops::scale(x, 2).requires_grad());
    {
      const GradMode on(true);
      EXPECT_TRUE(ops::scale(x, 2).requires_grad());
    }
    EXPECT_FALSE(grad_enabled());
  }
  EXPECT_TRUE(ops::scale(x, 2).requires_grad());
}

TEST(NoGrad, IsRestoredByAnException) {
  try {
    const NoGrad no_grad;
    throw UsageError("stop");
  } catch (const UsageError&) {
  }
  EXPECT_TRUE(grad_enabled());
}

TEST(RequiresGrad, IsForFloatingLeaves) {
  EXPECT_THAT([] { Tensor::zeros({1}, DType::kInt64).set_requires_grad(true); },
              ThrowsMessage<UsageError>(HasSubstr("only floating tensors")));
  EXPECT_THAT([] { ops::scale(leaf({1}), 2).set_requires_grad(false); },
              ThrowsMessage<UsageError>(HasSubstr("result of an operation")));
  const Tensor x = leaf({3});
  EXPECT_FALSE(x.detach().requires_grad());
  x.set_requires_grad(false);
  EXPECT_FALSE(ops::scale(x, 2).requires_grad());
}

/// The identity as an operation that adds the last gradient itself. `taken` receives what it is given.
Tensor adding(const Tensor& x, std::array<Tensor, 2>& taken) {
  const Tensor y = x.detach();
  record(y, "adding", {x},
         {.fused =
              [&taken](const Tensor& dy, const BackwardContext& context) {
                taken = context.take_gradient();
                EXPECT_FALSE(dy.defined()) << "the pass keeps none";
                return std::vector<Tensor>{taken[1].defined() ? ops::add(taken[0], taken[1]) : taken[0]};
              },
          .adds = true});
  return y;
}

TEST(AddingBackward, IsGivenTheLastGradientApartFromTheSumOfTheOthers) {
  const Tensor x = leaf({1, 2});
  std::array<Tensor, 2> taken;
  const Tensor y = adding(x, taken);
  const Tensor a = Tensor::from<double>({1, 10}, {2}), b = Tensor::from<double>({2, 20}, {2}),
               c = Tensor::from<double>({4, 40}, {2});
  const BackwardOptions again{.retain_graph = true};
  EXPECT_THAT(values_of(grad({y}, {x}, {a}, again).front()), ElementsAre(1, 10));
  EXPECT_TRUE(taken[0].aliases(a));
  EXPECT_FALSE(taken[1].defined());
  EXPECT_THAT(values_of(grad({y, y}, {x}, {a, b}, again).front()), ElementsAre(3, 30));
  EXPECT_TRUE(taken[0].aliases(a) && taken[1].aliases(b));
  EXPECT_THAT(values_of(grad({y, y, y, y}, {x}, {a, b, b, c}, again).front()), ElementsAre(9, 90));
  EXPECT_THAT(values_of(taken[0]), ElementsAre(5, 50));
  EXPECT_TRUE(taken[1].aliases(c));
  EXPECT_THAT(values_of(a), ElementsAre(1, 10)) << "added to by nobody";
}

TEST(AddingBackward, LeavesAnIntermediateGradientThatIsAskedForWhole) {
  const Tensor x = leaf({1, 2});
  std::array<Tensor, 2> taken;
  const Tensor y = adding(x, taken);
  const std::vector<Tensor> grads = grad(ops::sum(ops::add(ops::scale(y, 2), ops::scale(y, 3))), {y, x});
  for (const Tensor& gradient : grads) EXPECT_THAT(values_of(gradient), ElementsAre(5, 5));
}

TEST(AddingBackward, KeepsTheGradientOfAPassThatIsRecorded) {
  const Tensor x = leaf({1, 2}), v = leaf({3, 4});
  std::array<Tensor, 2> taken;
  const Tensor y = x.detach();
  record(y, "adding", {x},
         {.fused =
              [&taken](const Tensor&, const BackwardContext& context) {
                taken = context.take_gradient();
                return std::vector<Tensor>{taken[0]};
              },
          .adds = true});
  const Tensor first = grad({y, y}, {x}, {ops::mul(v, v), v}, {.create_graph = true}).front();
  EXPECT_THAT(values_of(first), ElementsAre(12, 20));
  EXPECT_FALSE(taken[1].defined());
  EXPECT_THAT([&] { grad(ops::sum(first), {v}); },
              ThrowsMessage<UsageError>(HasSubstr("'adding' cannot be differentiated again")));
}

/// Two models and two losses of both: the first backward pass keeps the graphs for the second.
TEST(RetainGraph, TwoLossesOfTwoModelsAddUp) {
  const Tensor x = Tensor::from<double>({1, -2, 3, 0.5}, {2, 2});
  const Tensor w0 = leaf({0.5, -1}), w1 = leaf({2, 0.25});
  const auto model = [&x](const Tensor& w) {
    return ops::linear(x, ops::reshape(w, {1, 2}), {}, kernels::Activation::kTanh);
  };
  const auto losses = [&] {
    const Tensor a = model(w0), b = model(w1);
    return std::vector<Tensor>{ops::sum(ops::add(ops::scale(a, 2), ops::scale(b, 3))),
                               ops::sum(ops::mul(ops::scale(a, 3), ops::scale(b, -5)))};
  };
  const std::vector<Tensor> expected = grad(losses(), {w0, w1});
  const std::vector<Tensor> both = losses();
  backward(both[0], {}, {.retain_graph = true});
  backward(both[1]);
  for (std::size_t i = 0; i < 2; ++i) {
    const std::vector<double> found = values_of((i == 0 ? w0 : w1).grad()), sum = values_of(expected[i]);
    for (std::size_t at = 0; at < sum.size(); ++at) EXPECT_NEAR(found[at], sum[at], 1e-14);
  }
  EXPECT_THROW(backward(both[0]), UsageError);
}

}  // namespace
}  // namespace lockstep::autograd
