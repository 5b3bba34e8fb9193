// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "runtime/base/hook_list.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::autograd {

struct Meta;

/// Is given a tensor's gradient, all of it; what it returns takes the gradient's place, an undefined tensor leaves it.
/// The tensor that it returns has the gradient's shape, dtype and device.
using GradientHook = std::function<Tensor(const Tensor& grad)>;

/// Calls `hook` whenever a backward pass has the gradient of `tensor`, the sum of what arrives from all that was and
/// will be computed with it, before it goes on: to the operations that made the tensor, or into grad(). Several hooks
/// are called in the order of their registration. grad() returns what the hooks of an input return. In a pass with
/// create_graph a hook's operations are recorded. A hook that holds the tensor itself keeps it for ever: hold
/// tensor.detach(). Of PyTorch's Tensor.register_hook.
///
/// Throws UsageError for a tensor without a gradient, and for a parameter in an arena (amp::initialize), whose gradient
/// operations write where it belongs: after_backward() and an optimizer's step see that. During backward() for a hook
/// that returns another shape, dtype or device.
HookHandle register_hook(const Tensor& tensor, GradientHook hook);

/// `grad` as the hooks return it. A null list has none.
Tensor run_hooks(const std::shared_ptr<const HookList<GradientHook>>& hooks, Tensor grad);

/// Throws UsageError unless each of `returned`, the gradients that hooks leave in the place of `computed`, has the
/// shape, dtype and device of that, and is undefined where that is.
void require_replaceable(const std::vector<Tensor>& computed, const std::vector<Tensor>& returned);

/// The place in the graph at which the gradient of `tensor` has passed the hooks.
std::shared_ptr<Meta> behind_hooks(const Tensor& tensor);

}  // namespace lockstep::autograd
