// SPDX-License-Identifier: Apache-2.0
#include "runtime/nn/module_hooks.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "runtime/autograd/grad_mode.h"
#include "runtime/autograd/node.h"
#include "runtime/autograd/tensor_hooks.h"

namespace lockstep::nn {

namespace {

using autograd::Backward;
using autograd::BackwardContext;
using autograd::OnLosses;

/// One call of a module that has backward hooks: the gradient of its output waits here for those of its inputs.
struct Call {
  Module& module;
  HookList<BackwardHook> hooks;
  Tensor grad_output = {};

  void run_hooks(std::vector<Tensor>& grad_inputs) {
    const Tensor grad = std::exchange(grad_output, {});
    const std::vector<Tensor> computed = grad_inputs;
    hooks.for_each([&](const BackwardHook& hook) { hook(module, grad_inputs, grad); });
    autograd::require_replaceable(computed, grad_inputs);
  }
};

/// The inputs as results of an operation whose backward, when all their gradients are there, calls the hooks.
std::vector<Tensor> entered(const std::vector<Tensor>& inputs, const std::shared_ptr<Call>& call) {
  std::vector<Tensor> results;
  for (const Tensor& input : inputs) results.push_back(input.detach());
  autograd::record(results, "module_hook", inputs, OnLosses::kAdds,
                   {.recorded = [call](const Tensor&, const BackwardContext& context) {
                     std::vector<Tensor> grads(context.gradients().begin(), context.gradients().end());
                     call->run_hooks(grads);
                     return grads;
                   }});
  return results;
}

/// The output as the result of an operation whose backward notes the gradient; without an input that has one, it calls
/// the hooks.
Tensor left(const Tensor& output, const std::shared_ptr<Call>& call, std::size_t inputs, bool inputs_have_gradients) {
  const Tensor result = output.detach();
  autograd::record(result, "module_hook", {output}, OnLosses::kAdds,
                   {.recorded = [=](const Tensor& grad, const BackwardContext&) {
                     call->grad_output = grad;
                     if (!inputs_have_gradients) {
                       std::vector<Tensor> none(inputs);
                       call->run_hooks(none);
                     }
                     return std::vector{grad};
                   }});
  return result;
}

}  // namespace

Tensor ModuleHooks::call(Module& module, std::span<const Tensor> given,
                         const std::function<Tensor(std::span<const Tensor>)>& run) const {
  std::vector<Tensor> inputs(given.begin(), given.end());
  before.for_each([&](const ForwardPreHook& hook) { hook(module, inputs); });
  std::shared_ptr<Call> in_backward;
  bool inputs_have_gradients = false;
  if (!backward.empty() && autograd::grad_enabled()) {
    in_backward = std::make_shared<Call>(Call{module, backward});
    inputs_have_gradients = std::ranges::any_of(inputs, autograd::is_recorded);
    if (inputs_have_gradients) inputs = entered(inputs, in_backward);
  }
  Tensor output = run(inputs);
  behind.for_each([&](const ForwardHook& hook) {
    const Tensor returned = hook(module, inputs, output);
    if (returned.defined()) output = returned;
  });
  if (!in_backward || !autograd::is_recorded(output)) return output;
  return left(output, in_backward, inputs.size(), inputs_have_gradients);
}

}  // namespace lockstep::nn
