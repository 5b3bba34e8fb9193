// SPDX-License-Identifier: Apache-2.0
#include "runtime/autograd/tensor_hooks.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "runtime/autograd/node.h"
#include "runtime/base/error.h"

namespace lockstep::autograd {

namespace {

using Hooks = HookList<GradientHook>;

/// Puts an operation that calls the hooks between `tensor` and the operation that made it. Whoever computes with the
/// tensor knows it by its place in the graph, so that gradients from operations recorded before pass it, too.
std::shared_ptr<Hooks> insert_hooks(const Tensor& tensor) {
  const Meta& meta = meta_of(tensor);
  const auto behind = std::make_shared<Meta>();
  behind->requires_grad = true;
  behind->producer = meta.producer;
  behind->result = meta.result;
  const auto hooks = std::make_shared<Hooks>();
  const auto call = [hooks](const Tensor& grad, const BackwardContext&) { return std::vector{run_hooks(hooks, grad)}; };
  Node::add_result(Node::behind(behind, "hook", {.recorded = call}), tensor);
  return hooks;
}

}  // namespace

HookHandle register_hook(const Tensor& tensor, GradientHook hook) {
  require_defined(tensor, "register_hook", "the tensor");
  if (!hook) throw UsageError("register_hook without a function");
  if (!tensor.requires_grad()) throw UsageError("register_hook on " + describe(tensor) + ", which needs no gradient");
  Meta& meta = meta_of(tensor);
  if (meta.slot.defined()) {
    throw UsageError("register_hook on " + (meta.name.empty() ? "a parameter" : meta.name) +
                         ", whose gradient is written where it lies in an arena",
                     "Look at grad() or change it between the backward pass and the optimizer's step, or in "
                     "autograd::after_backward().");
  }
  if (!meta.hooks) {
    const auto hooks = meta.producer ? insert_hooks(tensor) : std::make_shared<Hooks>();
    meta.hooks = hooks;
  }
  return meta.hooks->add(std::move(hook));
}

Tensor run_hooks(const std::shared_ptr<const Hooks>& hooks, Tensor grad) {
  if (!hooks) return grad;
  hooks->for_each([&grad](const GradientHook& hook) {
    const Tensor returned = hook(grad);
    if (!returned.defined()) return;
    require_replaceable({grad}, {returned});
    grad = returned;
  });
  return grad;
}

void require_replaceable(const std::vector<Tensor>& computed, const std::vector<Tensor>& returned) {
  const auto is_like = [](const Tensor& a, const Tensor& b) {
    if (!a.defined() || !b.defined()) return a.defined() == b.defined();
    return a.shape() == b.shape() && a.dtype() == b.dtype() && a.device() == b.device();
  };
  const auto words = [](const std::vector<Tensor>& gradients) {
    std::string text;
    for (const Tensor& gradient : gradients) {
      text += (text.empty() ? "" : ", ") + (gradient.defined() ? describe(gradient) : "none");
    }
    return text.empty() ? "nothing" : text;
  };
  if (std::ranges::equal(computed, returned, is_like)) return;
  throw UsageError("a hook leaves " + words(returned) + " in the place of a gradient that is " + words(computed),
                   "Return gradients of the same shapes, dtypes and devices.");
}

std::shared_ptr<Meta> behind_hooks(const Tensor& tensor) {
  const std::shared_ptr<Meta>& meta = tensor.autograd_meta();
  return meta->producer && meta->hooks ? meta->producer->inputs().front() : meta;
}

}  // namespace lockstep::autograd
