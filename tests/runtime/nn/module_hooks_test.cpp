// SPDX-License-Identifier: Apache-2.0
#include "runtime/nn/module_hooks.h"

#include <gmock/gmock.h>

#include "amp/autocast/autocast.h"
#include "runtime/autograd/engine.h"
#include "runtime/autograd/grad_mode.h"
#include "runtime/autograd/meta.h"
#include "runtime/autograd/tensor_hooks.h"
#include "runtime/base/error.h"
#include "runtime/nn/checkpoint.h"
#include "runtime/nn/forward.h"
#include "runtime/nn/layers.h"
#include "runtime/ops/ops.h"
#include "tests/runtime/kernels/tensors.h"

namespace lockstep::nn {
namespace {

using kernels::testing::values_of;
using testing::ElementsAre;
using testing::HasSubstr;

class ModuleHookTest : public testing::Test {
 protected:
  ModuleHookTest() {
    manual_seed(3);
    first_ = &net_.add<Linear>("first", 3, 4, true, kernels::Activation::kTanh);
    last_ = &net_.add<Linear>("last", 4, 2);
  }

  std::vector<Tensor> gradients() const {
    std::vector<Tensor> all;
    for (const Parameter& parameter : net_.parameters()) all.push_back(parameter.tensor.grad());
    return all;
  }

  Sequential net_;
  Linear* first_ = nullptr;
  Linear* last_ = nullptr;
  Tensor x_ = Tensor::from<float>({1, -2, 0.5f, 3, 1, -1}, {2, 3});
};

TEST_F(ModuleHookTest, SeeEachForwardPassOfThePartsAndOfTheWhole) {
  std::vector<std::string> calls;
  const auto note = [&calls](const std::string& what) {
    return [&calls, what](Module&, std::vector<Tensor>&) { calls.push_back(what); };
  };
  net_.register_forward_pre_hook(note("net"));
  first_->register_forward_pre_hook(note("first"));
  HookHandle removed = last_->register_forward_pre_hook(note("last"));
  last_->register_forward_hook([&calls](Module&, std::span<const Tensor>, const Tensor& output) {
    calls.push_back("behind " + output.shape().str());
    return Tensor();
  });
  static_cast<void>(forward(net_, x_));
  EXPECT_THAT(calls, ElementsAre("net", "first", "last", "behind [2, 2]"));
  calls.clear();
  removed.remove();
  static_cast<void>(net_(x_));
  EXPECT_THAT(calls, ElementsAre("net", "first", "behind [2, 2]"));
  calls.clear();
  // As in PyTorch, forward() itself is the pass alone.
  static_cast<void>(net_.forward(x_));
  EXPECT_THAT(calls, ElementsAre("first", "behind [2, 2]"));
}

TEST_F(ModuleHookTest, ReplaceInputsAndOutputs) {
  const std::vector<double> expected = values_of(ops::scale(net_(ops::scale(x_, 2)), 3));
  net_.register_forward_pre_hook([](Module&, std::vector<Tensor>& inputs) { inputs[0] = ops::scale(inputs[0], 2); });
  net_.register_forward_hook(
      [](Module&, std::span<const Tensor>, const Tensor& output) { return ops::scale(output, 3); });
  EXPECT_EQ(values_of(net_(x_)), expected);
  net_.register_forward_pre_hook([](Module&, std::vector<Tensor>& inputs) { inputs.clear(); });
  EXPECT_THROW(net_(x_), UsageError);
}

TEST_F(ModuleHookTest, OfBackwardPassesSeeBothGradientsAndReplaceThat) {
  const Tensor x = x_.to(kCpu);
  x.set_requires_grad(true);
  const Tensor h = first_->forward(x);
  const std::vector<Tensor> expected = autograd::grad(ops::sum(ops::mul(last_->forward(h), last_->forward(h))), {h, x});

  std::vector<std::vector<double>> seen;
  last_->register_full_backward_hook([&](Module&, std::vector<Tensor>& grads, const Tensor& grad_output) {
    EXPECT_EQ(grad_output.shape(), (Shape{2, 2}));
    seen.push_back(values_of(grads.at(0)));
    grads[0] = ops::scale(grads[0], 2);
  });
  const Tensor y = net_(x);
  ops::sum(ops::mul(y, y)).backward();
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_THAT(seen[0], testing::Pointwise(testing::DoubleNear(1e-5), values_of(expected[0])));
  EXPECT_THAT(values_of(x.grad()),
              testing::Pointwise(testing::DoubleNear(1e-5), values_of(ops::scale(expected[1], 2))));
}

TEST_F(ModuleHookTest, OfBackwardPassesAreCalledWhereTheInputNeedsNoGradient) {
  int calls = 0;
  first_->register_full_backward_hook([&](Module& module, std::vector<Tensor>& grads, const Tensor& grad_output) {
    ++calls;
    EXPECT_EQ(&module, first_);
    EXPECT_FALSE(grads.at(0).defined());
    EXPECT_EQ(grad_output.shape(), (Shape{2, 4}));
  });
  ops::sum(net_(x_)).backward();
  EXPECT_EQ(calls, 1);
  const autograd::NoGrad no_grad;
  static_cast<void>(net_(x_));
  EXPECT_EQ(calls, 1);
}

TEST_F(ModuleHookTest, ThatOnlyLookChangeNoGradient) {
  ops::sum(net_(x_)).backward();
  const std::vector<Tensor> plain = gradients();
  for (const Parameter& parameter : net_.parameters()) autograd::meta_of(parameter.tensor).grad = {};
  for (Linear* const layer : {first_, last_}) {
    layer->register_full_backward_hook([](Module&, std::vector<Tensor>&, const Tensor&) {});
  }
  ops::sum(net_(x_)).backward();
  const std::vector<Tensor> hooked = gradients();
  for (std::size_t i = 0; i < plain.size(); ++i) {
    EXPECT_THAT(values_of(hooked[i]), testing::Pointwise(testing::DoubleNear(1e-6), values_of(plain[i])));
  }
}

TEST_F(ModuleHookTest, RefuseAnotherGradient) {
  const std::vector<BackwardHook> wrong{
      [](Module&, std::vector<Tensor>& grads, const Tensor&) { grads.clear(); },
      [](Module&, std::vector<Tensor>& grads, const Tensor&) { grads[0] = Tensor::zeros({1}, DType::kFloat32); },
      [](Module&, std::vector<Tensor>& grads, const Tensor&) { grads[0] = {}; }};
  for (const BackwardHook& hook : wrong) {
    HookHandle handle = last_->register_full_backward_hook(hook);
    EXPECT_THROW(ops::sum(net_(x_)).backward(), UsageError);
    handle.remove();
  }
}

TEST_F(ModuleHookTest, AreCalledAgainWhereActivationsAreComputedAgain) {
  int forward = 0, backward = 0;
  last_->register_forward_pre_hook([&](Module&, std::vector<Tensor>&) { ++forward; });
  last_->register_full_backward_hook([&](Module&, std::vector<Tensor>&, const Tensor&) { ++backward; });
  const Tensor h = first_->forward(x_);
  ops::sum(checkpoint(*last_, h)).backward();
  EXPECT_EQ(forward, 2);
  EXPECT_EQ(backward, 1);
}

TEST_F(ModuleHookTest, OfALeafInACheckpointSeeItsWholeGradient) {
  const Tensor weight = last_->parameters().front().tensor;
  std::vector<std::vector<double>> seen;
  autograd::register_hook(weight, [&](const Tensor& grad) {
    seen.push_back(values_of(grad));
    return Tensor();
  });
  const Tensor h = first_->forward(x_);
  // Once within the checkpoint, once outside.
  ops::sum(checkpoint(*last_, h) + last_->forward(h)).backward();
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0], values_of(weight.grad()));
}

}  // namespace
}  // namespace lockstep::nn
