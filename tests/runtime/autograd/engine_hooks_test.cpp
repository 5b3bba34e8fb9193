// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "runtime/autograd/engine.h"
#include "runtime/ops/ops.h"
#include "tests/runtime/autograd/graph.h"

namespace lockstep::autograd {
namespace {

using ::testing::ElementsAre;
using testing::give_slot;
using testing::leaf;
using testing::probe;
using testing::values_of;

TEST(GradHook, FiresOnceBehindTheLastContribution) {
  const Tensor x = leaf({2});
  std::vector<double> seen;
  meta_of(x).on_grad_ready = [&] { seen.push_back(x.grad().item()); };
  ops::sum(ops::add(ops::add(ops::scale(x, 1), ops::scale(x, 10)), ops::add(x, x))).backward();
  EXPECT_THAT(seen, ElementsAre(13));
}

TEST(GradHook, FiresWhileBackwardGoesOn) {
  const Tensor x = leaf({1}), w = leaf({2});
  std::string order;
  meta_of(w).on_grad_ready = [&order] { order += "w"; };
  meta_of(x).on_grad_ready = [&order] { order += "x"; };
  const Tensor early = probe(x, [&order] { order += "-"; });
  ops::sum(ops::mul(early, w)).backward();
  EXPECT_EQ(order, "w-x");
}

TEST(GradHook, IsSilentInGrad) {
  const Tensor x = leaf({1});
  bool fired = false;
  meta_of(x).on_grad_ready = [&fired] { fired = true; };
  grad(ops::sum(x), {x});
  EXPECT_FALSE(fired);
}

TEST(GradHook, FiresForALeafThatIsTheOutput) {
  const Tensor x = leaf({1});
  int fired = 0;
  meta_of(x).on_grad_ready = [&fired] { ++fired; };
  x.backward();
  EXPECT_EQ(fired, 1);
}

TEST(AfterBackward, RunsInOrderWhenThePassIsOver) {
  const Tensor x = leaf({1}), w = leaf({2});
  std::string order;
  meta_of(w).on_grad_ready = [&order] {
    after_backward([&order] { order += "1"; });
    after_backward([&order] { order += "2"; });
  };
  meta_of(x).on_grad_ready = [&order] { order += "x"; };
  ops::sum(ops::mul(ops::scale(x, 2), w)).backward();
  EXPECT_EQ(order, "x12");
}

TEST(AfterBackward, RunsByOrderThenAsGiven) {
  const Tensor x = leaf({1});
  std::string order;
  meta_of(x).on_grad_ready = [&order] {
    after_backward([&order] { order += "c"; }, 2);
    after_backward([&order] { order += "a"; }, 1);
    after_backward(
        [&order] {
          order += "b";
          after_backward([&order] { order += "z"; }, 0);
        },
        1);
    after_backward([&order] { order += "d"; }, 2);
  };
  x.backward();
  EXPECT_EQ(order, "abcdz");
}

TEST(AfterBackward, ACallbackMayAskForAnother) {
  const Tensor x = leaf({1});
  int left = 100;
  std::function<void()> again = [&] {
    if (--left > 0) after_backward(again);
  };
  meta_of(x).on_grad_ready = [&again] { after_backward(again); };
  x.backward();
  EXPECT_EQ(left, 0);
}

TEST(AfterBackward, BelongsToTheInnermostPass) {
  const Tensor x = leaf({1}), y = leaf({2});
  std::string order;
  meta_of(y).on_grad_ready = [&order] { after_backward([&order] { order += "inner "; }); };
  meta_of(x).on_grad_ready = [&] {
    after_backward([&order] { order += "outer"; });
    y.backward();
  };
  x.backward();
  EXPECT_EQ(order, "inner outer");
}

TEST(AfterBackward, AnExceptionLeavesThroughBackward) {
  const Tensor x = leaf({1});
  meta_of(x).on_grad_ready = [] { after_backward([] { throw UsageError("at the end"); }); };
  EXPECT_THROW(x.backward(), UsageError);
}

TEST(AfterBackward, OutsideAPassIsAnError) {
  EXPECT_THROW(after_backward([] {}), UsageError);
}

TEST(Slot, IsOverwrittenThenAddedTo) {
  const Tensor x = leaf({1, 2});
  const Tensor slot = give_slot(x);
  slot.mutable_as<float>()[0] = 99;
  EXPECT_FALSE(x.grad().defined());
  ops::sum(ops::scale(x, 3)).backward();
  EXPECT_TRUE(x.grad().aliases(slot));
  EXPECT_THAT(values_of(slot), ElementsAre(3, 3));
  ops::sum(ops::mul(x, x)).backward();
  EXPECT_THAT(values_of(slot), ElementsAre(5, 7));
}

TEST(Slot, OfAMatmulOperandUsedTwiceHoldsBothContributions) {
  const Tensor w = Tensor::from<float>({1, 2, 3, 4}, {2, 2});
  w.set_requires_grad(true);
  const Tensor slot = give_slot(w);
  ops::sum(ops::matmul(w, w)).backward();
  EXPECT_THAT(values_of(slot), ElementsAre(7, 11, 9, 13));
}

TEST(Slot, OfAConvolutionsInputKeepsWhatItHeld) {
  const Tensor x = Tensor::from<float>({1, 2, 3}, {1, 3, 1}), weight = Tensor::from<float>({10}, {1, 1, 1});
  x.set_requires_grad(true);
  const Tensor slot = give_slot(x);
  kernels::ConvGeometry geometry;
  geometry.spatial_rank = 1;
  for (int pass = 0; pass < 2; ++pass) ops::sum(ops::conv(x, weight, {}, geometry)).backward();
  EXPECT_THAT(values_of(slot), ElementsAre(20, 20, 20));
}

/// A wire dtype that is neither float32 nor that of the computation.
TEST(Slot, OfAnotherDtypeReceivesTheRoundedGradient) {
  for (const DType wire : {DType::kFloat16, DType::kBFloat16}) {
    const Tensor x = Tensor::from<float>({1, 2}, {1, 2}), weight = Tensor::from<float>({3, 4}, {1, 2});
    const Tensor bias = Tensor::from<float>({5}, {1});
    for (const Tensor& parameter : {weight, bias}) parameter.set_requires_grad(true);
    const Tensor weight_slot = give_slot(weight, wire), bias_slot = give_slot(bias, wire);
    for (int pass = 0; pass < 2; ++pass) ops::sum(ops::linear(x, weight, bias)).backward();
    EXPECT_THAT(values_of(weight_slot), ElementsAre(2, 4)) << name_of(wire);
    EXPECT_THAT(values_of(bias_slot), ElementsAre(2)) << name_of(wire);
  }
}

}  // namespace
}  // namespace lockstep::autograd
