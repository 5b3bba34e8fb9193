// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "runtime/base/hook_list.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::nn {

class Module;

/// Called before a forward pass with its inputs, which it may replace. Of PyTorch's register_forward_pre_hook.
using ForwardPreHook = std::function<void(Module& module, std::vector<Tensor>& inputs)>;
/// Called behind a forward pass; what it returns takes the output's place, an undefined tensor leaves it. Of PyTorch's
/// register_forward_hook.
using ForwardHook = std::function<Tensor(Module& module, std::span<const Tensor> inputs, const Tensor& output)>;
/// Called in a backward pass once the gradients of all inputs are there: undefined where an input needs none. It may
/// replace those that are defined by others of their shape, dtype and device. Of PyTorch's register_full_backward_hook.
using BackwardHook = std::function<void(Module& module, std::vector<Tensor>& grad_inputs, const Tensor& grad_output)>;

/// The hooks of one module.
struct ModuleHooks {
  HookList<ForwardPreHook> before;
  HookList<ForwardHook> behind;
  HookList<BackwardHook> backward;

  /// `run` with the inputs that the hooks before it leave, and those behind it.
  Tensor call(Module& module, std::span<const Tensor> inputs,
              const std::function<Tensor(std::span<const Tensor> inputs)>& run) const;
};

}  // namespace lockstep::nn
