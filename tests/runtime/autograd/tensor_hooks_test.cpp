// SPDX-License-Identifier: Apache-2.0
#include "runtime/autograd/tensor_hooks.h"

#include <gmock/gmock.h>

#include "runtime/autograd/engine.h"
#include "runtime/autograd/gradcheck.h"
#include "runtime/base/error.h"
#include "runtime/ops/ops.h"
#include "tests/runtime/kernels/tensors.h"

namespace lockstep::autograd {
namespace {

using kernels::testing::values_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;

Tensor leaf_of(std::vector<float> values) {
  const auto count = static_cast<std::int64_t>(values.size());
  const Tensor leaf = Tensor::from(values, {count});
  leaf.set_requires_grad(true);
  return leaf;
}

/// Keeps what it is called with, and returns `factor` times that; 0: nothing.
struct SeenGradients {
  std::vector<std::vector<double>> gradients;

  GradientHook hook(double factor = 0) {
    return [this, factor](const Tensor& grad) {
      gradients.push_back(values_of(grad));
      return factor == 0 ? Tensor() : ops::scale(grad, factor);
    };
  }
};

TEST(TensorHooks, SeeTheSumOfAllUsesEvenOfThoseRecordedBefore) {
  const Tensor x = leaf_of({1, 2});
  const Tensor y = ops::scale(x, 2);
  const Tensor before = ops::scale(y, 3);
  SeenGradients seen;
  register_hook(y, seen.hook());
  const Tensor behind = ops::mul(y, y);
  ops::sum(before + behind).backward();
  ASSERT_EQ(seen.gradients.size(), 1u);
  EXPECT_THAT(seen.gradients[0], ElementsAre(3 + 4, 3 + 8));
  EXPECT_THAT(values_of(x.grad()), ElementsAre(14, 22));
}

TEST(TensorHooks, ReplaceTheGradientInTheOrderOfRegistration) {
  const Tensor x = leaf_of({1, 2});
  const Tensor y = ops::scale(x, 2);
  SeenGradients first, second;
  register_hook(y, first.hook(10));
  register_hook(y, second.hook(3));
  ops::sum(y).backward();
  EXPECT_THAT(first.gradients, ElementsAre(ElementsAre(1, 1)));
  EXPECT_THAT(second.gradients, ElementsAre(ElementsAre(10, 10)));
  EXPECT_THAT(values_of(x.grad()), ElementsAre(60, 60));
}

TEST(TensorHooks, AreGoneOnceRemoved) {
  const Tensor x = leaf_of({1, 2});
  const Tensor y = ops::scale(x, 2);
  SeenGradients kept, removed, once;
  register_hook(y, kept.hook());
  HookHandle handle = register_hook(y, removed.hook(5));
  HookHandle self;
  self = register_hook(y, [&](const Tensor& grad) {
    self.remove();
    return once.hook(7)(grad);
  });
  handle.remove();
  handle.remove();
  for (int pass = 0; pass < 2; ++pass) backward(ops::sum(y), {}, {.retain_graph = true});
  EXPECT_EQ(kept.gradients.size(), 2u);
  EXPECT_EQ(removed.gradients.size(), 0u);
  EXPECT_EQ(once.gradients.size(), 1u);
  EXPECT_THAT(values_of(x.grad()), ElementsAre(14 + 2, 14 + 2));
}

TEST(TensorHooks, OfALeafSeeEachPassOnce) {
  const Tensor x = leaf_of({1, 2});
  SeenGradients seen;
  register_hook(x, seen.hook(2));
  for (int pass = 0; pass < 2; ++pass) ops::sum(ops::scale(x, 3) + ops::mul(x, x)).backward();
  EXPECT_THAT(seen.gradients, ElementsAre(ElementsAre(5, 7), ElementsAre(5, 7)));
  EXPECT_THAT(values_of(x.grad()), ElementsAre(20, 28));
}

TEST(TensorHooks, ChangeWhatGradReturns) {
  const Tensor x = leaf_of({1, 2});
  const Tensor y = ops::scale(x, 2);
  SeenGradients of_x, of_y;
  register_hook(x, of_x.hook(10));
  register_hook(y, of_y.hook(3));
  const std::vector<Tensor> grads = grad(ops::sum(ops::mul(y, y)), {x, y, x});
  EXPECT_THAT(values_of(grads[1]), ElementsAre(12, 24));
  EXPECT_THAT(values_of(grads[0]), ElementsAre(240, 480));
  EXPECT_THAT(values_of(grads[2]), ElementsAre(240, 480));
  EXPECT_EQ(of_x.gradients.size(), 1u);
  EXPECT_FALSE(x.grad().defined());
  // Without a need for x its hook is not called.
  static_cast<void>(grad(ops::sum(y), {y}));
  EXPECT_EQ(of_x.gradients.size(), 1u);
  EXPECT_EQ(of_y.gradients.size(), 2u);
}

TEST(TensorHooks, SeeTheGradientOfAnActivationNotOfWhatIsBeforeIt) {
  // Without a hook the second layer multiplies the activation's derivative into its gradient.
  const Tensor x = Tensor::from<float>({1, -2, 0.5f, 3, 1, -1}, {2, 3});
  const Tensor w = Tensor::from<float>({0.5f, -1, 2, 1, 0.25f, -0.5f, 1, 1, 1}, {3, 3});
  const auto gradients = [&](bool hooked, double factor) {
    const Tensor first = ops::scale(w, 1).detach(), second = ops::scale(w, 0.5).detach();
    first.set_requires_grad(true);
    second.set_requires_grad(true);
    const Tensor h = ops::linear(x, first, {}, kernels::Activation::kTanh);
    SeenGradients seen;
    if (hooked) register_hook(h, seen.hook(factor));
    ops::sum(ops::linear(h, second, {})).backward();
    return std::pair(values_of(first.grad()), hooked ? seen.gradients[0] : std::vector<double>());
  };
  const auto plain = gradients(false, 0), seen = gradients(true, 0), tripled = gradients(true, 3);
  EXPECT_THAT(seen.first, Pointwise(::testing::DoubleNear(1e-6), plain.first));
  for (std::size_t i = 0; i < plain.first.size(); ++i) EXPECT_NEAR(tripled.first[i], 3 * plain.first[i], 1e-5);
  // dL/dh is the columns' sum of the second weight, in each row.
  EXPECT_THAT(seen.second, ElementsAre(1.25f, 0.125f, 1.25f, 1.25f, 0.125f, 1.25f));
}

TEST(TensorHooks, CanBeDifferentiated) {
  const Tensor x = Tensor::from<double>({0.3, -1.2}, {2});
  x.set_requires_grad(true);
  const auto hooked = [](const std::vector<Tensor>& inputs) {
    const Tensor y = ops::tanh(inputs[0]);
    register_hook(y, [](const Tensor& grad) { return ops::mul(grad, ops::scale(grad, 2)); });
    return std::vector{ops::sum(ops::mul(y, y))};
  };
  // With g = 2 y for the sum of squares the gradient is 8 y^2 (1 - y^2). What its own derivative brings to y, which is
  // 16 y - 32 y^3, passes the hook in turn.
  const Tensor gradient = grad(hooked({x})[0], {x}, {}, {.create_graph = true})[0];
  const Tensor second = grad(ops::sum(gradient), {x})[0];
  for (std::int64_t i = 0; i < 2; ++i) {
    const double y = std::tanh(x.item(i)), slope = 1 - y * y;
    EXPECT_NEAR(gradient.item(i), 8 * y * y * slope, 1e-12);
    const double brought = 16 * y - 32 * y * y * y;
    EXPECT_NEAR(second.item(i), 2 * brought * brought * slope, 1e-12);
  }
}

TEST(TensorHooks, RefuseWhatHasNoGradientAndWhatIsNone) {
  const auto expect_refused = [](const std::function<void()>& call, const std::string& words) {
    try {
      call();
      ADD_FAILURE() << "taken: " << words;
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), HasSubstr(words));
    }
  };
  const GradientHook nothing = [](const Tensor&) { return Tensor(); };
  expect_refused([&] { register_hook(Tensor::zeros({2}, DType::kFloat32), nothing); }, "needs no gradient");
  expect_refused([&] { register_hook(Tensor(), nothing); }, "the tensor");
  const Tensor x = leaf_of({1, 2});
  expect_refused([&] { register_hook(x, nullptr); }, "without a function");
  for (const Tensor& wrong : {Tensor::zeros({3}, DType::kFloat32), Tensor::zeros({2}, DType::kFloat16)}) {
    const Tensor y = ops::scale(x, 2);
    register_hook(y, [wrong](const Tensor&) { return wrong; });
    expect_refused([&] { ops::sum(y).backward(); }, "in the place of a gradient");
  }
}

}  // namespace
}  // namespace lockstep::autograd
