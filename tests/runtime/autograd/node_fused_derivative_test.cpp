// SPDX-License-Identifier: Apache-2.0
// The derivative of an activation may be multiplied in by whoever makes the gradient that it meets.
#include <gmock/gmock.h>

#include "runtime/autograd/engine.h"
#include "runtime/kernels/pointwise.h"
#include "runtime/ops/ops.h"
#include "tests/runtime/autograd/graph.h"

namespace lockstep::autograd {
namespace {

using ::testing::ElementsAre;
using testing::leaf;
using testing::values_of;

/// relu as an operation with a derivative; tells whether that had been multiplied in when its backward ran.
struct Producer {
  bool multiplied = false;

  Tensor operator()(const Tensor& x) {
    const Tensor y = Tensor::empty(x.shape(), x.dtype());
    const kernels::Pointwise& pointwise = kernels::Pointwise::on(kCpu);
    pointwise.activate(kernels::Activation::kRelu, x, y);
    record(y, "producer", {x},
           {.fused =
                [this, y = y.detach()](const Tensor& dy, const BackwardContext& context) {
                  multiplied = context.multiplied();
                  if (multiplied) return std::vector<Tensor>{dy};
                  const Tensor dx = Tensor::empty(dy.shape(), dy.dtype());
                  kernels::Pointwise::on(kCpu).activate_backward(kernels::Activation::kRelu, y, dy, dx);
                  return std::vector<Tensor>{dx};
                },
            .derivative = {kernels::Activation::kRelu, SavedTensor(y)}});
    return y;
  }
};

/// 2 x, whose backward takes the derivative where it may.
Tensor twice(const Tensor& x) {
  const Tensor y = ops::scale(x.detach(), 2);
  record(y, "twice", {x}, {.fused = [](const Tensor& dy, const BackwardContext& context) {
           const Tensor dx = ops::scale(dy, 2);
           if (const auto derivative = context.take_derivative(0)) {
             kernels::Pointwise::on(kCpu).activate_backward(derivative->activation, derivative->at.peek(), dx, dx);
           }
           return std::vector<Tensor>{dx};
         }});
  return y;
}

TEST(FusedDerivative, IsTakenByTheOnlyConsumer) {
  Producer relu;
  const Tensor x = leaf({-1, 3});
  ops::sum(twice(relu(x))).backward();
  EXPECT_TRUE(relu.multiplied);
  EXPECT_THAT(values_of(x.grad()), ElementsAre(0, 2));
}

TEST(FusedDerivative, StaysWhereTheResultIsUsedTwice) {
  Producer relu;
  const Tensor x = leaf({-1, 3});
  const Tensor y = relu(x);
  ops::sum(ops::add(twice(y), twice(y))).backward();
  EXPECT_FALSE(relu.multiplied);
  EXPECT_THAT(values_of(x.grad()), ElementsAre(0, 4));
}

TEST(FusedDerivative, StaysWhereAnotherOperationUsesTheResult) {
  Producer relu;
  const Tensor x = leaf({-1, 3});
  const Tensor y = relu(x);
  ops::sum(ops::add(twice(y), ops::scale(y, 5))).backward();
  EXPECT_FALSE(relu.multiplied);
  EXPECT_THAT(values_of(x.grad()), ElementsAre(0, 7));
}

TEST(FusedDerivative, AUseThatTheOutputDoesNotDependOnIsNoUse) {
  Producer relu;
  const Tensor x = leaf({-1, 3});
  const Tensor y = relu(x);
  const Tensor aside = twice(y);
  ops::sum(twice(y)).backward();
  EXPECT_TRUE(relu.multiplied);
}

TEST(FusedDerivative, StaysWhereTheGradientOfTheResultIsAskedFor) {
  Producer relu;
  const Tensor x = leaf({-1, 3});
  const Tensor y = relu(x);
  const Tensor output = ops::sum(twice(y));
  const std::vector<Tensor> both = grad(output, {y, x}, {}, {.retain_graph = true});
  EXPECT_FALSE(relu.multiplied);
  EXPECT_THAT(values_of(both[0]), ElementsAre(2, 2)) << "the gradient of y itself";
  EXPECT_THAT(values_of(both[1]), ElementsAre(0, 2));
  EXPECT_THAT(values_of(grad(output, {x}).front()), ElementsAre(0, 2));
  EXPECT_TRUE(relu.multiplied) << "each pass decides for itself";
}

TEST(FusedDerivative, StaysWhereTheBackwardIsRecorded) {
  Producer relu;
  const Tensor x = leaf({-1, 3});
  const Tensor first = grad(ops::sum(twice(relu(x))), {x}, {}, {.create_graph = true}).front();
  EXPECT_FALSE(relu.multiplied);
  EXPECT_THAT(values_of(first), ElementsAre(0, 2));
}

TEST(FusedDerivative, IsTakenInEveryPassThroughARetainedGraph) {
  Producer relu;
  const Tensor x = leaf({-1, 3});
  const Tensor output = ops::sum(twice(relu(x)));
  for (int pass = 1; pass <= 2; ++pass) {
    backward(output, {}, {.retain_graph = true});
    EXPECT_TRUE(relu.multiplied);
    EXPECT_THAT(values_of(x.grad()), ElementsAre(0, 2 * pass));
  }
}

TEST(FusedDerivative, OfALayersResultThatIsTheOutputIsItsOwn) {
  Producer relu;
  const Tensor x = leaf({-1, 3});
  backward(relu(x), Tensor::from<double>({10, 20}, {2}));
  EXPECT_FALSE(relu.multiplied);
  EXPECT_THAT(values_of(x.grad()), ElementsAre(0, 20));
}

TEST(FusedDerivative, LinearTakesThatOfWhatMadeItsInput) {
  Producer relu;
  const Tensor x = Tensor::from<double>({-1, 3}, {1, 2}), weight = Tensor::from<double>({4, 5}, {1, 2});
  x.set_requires_grad(true);
  ops::sum(ops::linear(relu(x), weight, {})).backward();
  EXPECT_TRUE(relu.multiplied);
  EXPECT_THAT(values_of(x.grad()), ElementsAre(0, 5));
}

}  // namespace
}  // namespace lockstep::autograd
