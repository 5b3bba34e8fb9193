// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>

#include "amp/autocast/autocast.h"
#include "runtime/autograd/engine.h"
#include "runtime/ops/ops.h"
#include "tests/runtime/autograd/graph.h"

namespace lockstep::autograd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::leaf;
using ::testing::ThrowsMessage;
using testing::values_of;

/// x^2, which counts how often each of its backward functions ran.
struct Square {
  int fused = 0;
  int recorded = 0;

  Tensor operator()(const Tensor& x) {
    const Tensor y = ops::mul(x.detach(), x.detach());
    const auto slope = [x = SavedTensor::in_graph(x)](const Tensor& dy, const BackwardContext& context) {
      return std::vector<Tensor>{ops::scale(ops::mul(dy, context.saved(x)), 2)};
    };
    record(y, "square", {x},
           {.fused =
                [this, slope](const Tensor& dy, const BackwardContext& context) {
                  ++fused;
                  return slope(dy, context);
                },
            .recorded =
                [this, slope](const Tensor& dy, const BackwardContext& context) {
                  ++recorded;
                  return slope(dy, context);
                }});
    return y;
  }
};

TEST(TwoBackwards, TheFusedOneRunsWithoutCreateGraph) {
  Square square;
  const Tensor x = leaf({3});
  EXPECT_EQ(grad(square(x), {x}).front().item(), 6);
  EXPECT_EQ(square.fused, 1);
  EXPECT_EQ(square.recorded, 0);
}

TEST(TwoBackwards, TheRecordedOneRunsWithCreateGraph) {
  Square square;
  const Tensor x = leaf({3});
  const Tensor first = grad(square(x), {x}, {}, {.create_graph = true}).front();
  EXPECT_EQ(square.fused, 0);
  EXPECT_EQ(square.recorded, 1);
  EXPECT_EQ(grad(first, {x}).front().item(), 2);
}

TEST(TwoBackwards, OneByKernelsAloneIsDifferentiableOnce) {
  const Tensor x = leaf({3});
  const Tensor y = x.detach();
  record(y, "once", {x}, {.fused = [](const Tensor& dy, const BackwardContext&) { return std::vector<Tensor>{dy}; }});
  const Tensor first = grad(y, {x}, {}, {.create_graph = true}).front();
  EXPECT_THAT([&] { grad(first, {x}); }, ThrowsMessage<UsageError>(HasSubstr("the backward of 'once'")));
}

/// e^x with a recorded backward that reads its result.
Tensor exponential(const Tensor& x) {
  const Tensor y = Tensor::from<double>({std::exp(x.item())}, {1});
  record(y, "exponential", {x}, {.recorded = [y = SavedTensor(y)](const Tensor& dy, const BackwardContext& context) {
           return std::vector<Tensor>{ops::mul(dy, context.result(y))};
         }});
  return y;
}

TEST(TwoBackwards, AResultHasItsPlaceInTheGraph) {
  const Tensor x = leaf({0.5});
  Tensor derivative = exponential(x);
  for (int order = 1; order <= 3; ++order) {
    derivative = grad(derivative, {x}, {}, {.create_graph = true}).front();
    EXPECT_DOUBLE_EQ(derivative.item(), std::exp(0.5)) << order;
  }
}

TEST(TwoBackwards, AGradientIsCastToTheDtypeOfItsInput) {
  const Tensor x = Tensor::from<float>({1, 2}, {2});
  x.set_requires_grad(true);
  const Tensor half = ops::cast(x, DType::kFloat16);
  const Tensor y = half.detach();
  record(y, "widening", {half}, {.recorded = [](const Tensor& dy, const BackwardContext&) {
           return std::vector<Tensor>{ops::cast(dy, DType::kFloat32)};
         }});
  const Tensor seed = ops::cast(Tensor::from<float>({1, 1}, {2}), DType::kFloat16);
  EXPECT_EQ(grad(y, {half}, seed).front().dtype(), DType::kFloat16);
  EXPECT_EQ(grad(ops::mul(half, half), {x}, seed).front().dtype(), DType::kFloat32);
}

/// [x, 2 x, an index], whose backward tells which gradients arrived.
std::vector<Tensor> several(const Tensor& x, std::vector<bool>& arrived) {
  const std::vector<Tensor> results{x.detach(), ops::scale(x.detach(), 2), Tensor::from<std::int64_t>({0}, {1})};
  record(results, "several", {x}, {.recorded = [&arrived](const Tensor& first, const BackwardContext& context) {
           arrived.clear();
           for (const Tensor& gradient : context.gradients()) arrived.push_back(gradient.defined());
           const Tensor second = context.gradients()[1];
           Tensor sum = first;
           if (second.defined()) sum = sum.defined() ? ops::add(sum, ops::scale(second, 2)) : ops::scale(second, 2);
           return std::vector<Tensor>{sum};
         }});
  return results;
}

TEST(SeveralResults, GiveTheirGradientsToOneBackward) {
  const Tensor x = leaf({3});
  std::vector<bool> arrived;
  const std::vector<Tensor> y = several(x, arrived);
  EXPECT_FALSE(y[2].requires_grad());
  ops::mul(y[0], y[1]).backward();
  EXPECT_THAT(arrived, ElementsAre(true, true, false));
  EXPECT_EQ(x.grad().item(), 12);
}

TEST(SeveralResults, MayBeUsedInPart) {
  const Tensor x = leaf({3});
  std::vector<bool> arrived;
  const std::vector<Tensor> y = several(x, arrived);
  EXPECT_EQ(grad(ops::mul(y[1], y[1]), {x}).front().item(), 24);
  EXPECT_THAT(arrived, ElementsAre(false, true, false));
}

TEST(SeveralResults, AreDifferentiatedTwice) {
  const Tensor x = leaf({3});
  std::vector<bool> arrived;
  const std::vector<Tensor> y = several(x, arrived);
  const Tensor first = grad(ops::mul(y[0], y[1]), {x}, {}, {.create_graph = true}).front();
  EXPECT_EQ(grad(first, {x}).front().item(), 4);
}

TEST(SeveralOutputs, AreWalkedAsTheirWeightedSum) {
  const Tensor x = leaf({3}), w = leaf({5});
  const Tensor shared = ops::mul(x, w);
  const std::vector<Tensor> outputs{ops::scale(shared, 2), ops::mul(shared, x)};
  const std::vector<Tensor> grads = grad(outputs, {x, w}, {Tensor(), Tensor::from<double>({10}, {1})});
  EXPECT_EQ(grads[0].item(), 2 * 5 + 10 * 2 * 3 * 5);
  EXPECT_EQ(grads[1].item(), 2 * 3 + 10 * 9);
  backward({x, ops::mul(x, x)});
  EXPECT_EQ(x.grad().item(), 1 + 6);
  EXPECT_THAT([&] { grad(outputs, {x}, {Tensor()}); },
              ThrowsMessage<UsageError>(HasSubstr("1 gradients for 2 outputs")));
}

TEST(SeveralOutputs, ReportALeafOnce) {
  const Tensor x = leaf({3});
  int ready = 0;
  meta_of(x).on_grad_ready = [&ready] { ++ready; };
  backward({x, ops::scale(x, 2), x});
  EXPECT_EQ(ready, 1);
  EXPECT_EQ(x.grad().item(), 4);
}

/// A matrix product in the backward pass tells by its dtype which autocast state held there.
TEST(AutocastState, OfTheForwardHoldsInTheBackward) {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4}, {2, 2});
  x.set_requires_grad(true);
  const auto probed = [](const Tensor& input, std::vector<DType>& found) {
    const Tensor y = input.detach();
    record(y, "probed", {input}, {.recorded = [&found](const Tensor& dy, const BackwardContext&) {
             found.push_back(ops::matmul(dy, dy).dtype());
             return std::vector<Tensor>{dy};
           }});
    return y;
  };
  std::vector<DType> found;
  {
    const amp::Autocast half(DType::kFloat16);
    const Tensor y = ops::sum(probed(x, found));
    const amp::Autocast off(false);
    y.backward();
    EXPECT_FALSE(amp::Autocast::enabled());
  }
  const Tensor y = ops::sum(probed(x, found));
  const amp::Autocast half(DType::kFloat16);
  y.backward();
  EXPECT_THAT(found, ElementsAre(DType::kFloat16, DType::kFloat32));
  EXPECT_TRUE(amp::Autocast::enabled());
}

}  // namespace
}  // namespace lockstep::autograd
