// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/tensor/tensor.h"

namespace lockstep::autograd {

class BackwardContext;

struct BackwardOptions {
  bool retain_graph = false;  ///< keep saved activations, so that the graph can be walked again
  /// Record the backward pass; implies retain_graph. backward() then leaves gradients whose graph holds the leaf that
  /// holds them, so prefer grad(), which makes no such cycle. Into parameters of an arena backward() refuses it.
  bool create_graph = false;
  bool allow_unused = false;  ///< of grad(): an input on which no output depends has an undefined gradient
};

/// Walks the graph from `output` with the gradient `grad` (undefined: one, and then output must be a scalar). Every
/// leaf that requires a gradient adds its contribution: to its slot in the gradient arena or to grad(). Iterative;
/// operations run in the reverse order of their creation, so that the order of additions never changes. Throws
/// UsageError when output has no graph or when the graph was walked before.
///
/// Passes on several threads may end in the same leaves: each gradient is added once, in the threads' order; on a GPU
/// where the threads share a stream. Throws UsageError where another thread's pass is in a leaf that shares the
/// guard of one that this pass reaches (Meta::pass_guard: the model is one of DistributedDataParallel's).
void backward(const Tensor& output, const Tensor& grad = {}, const BackwardOptions& options = {});

/// backward() from several outputs in one walk, in which operations that they share are walked once. `grads`: one an
/// output, or none.
void backward(const std::vector<Tensor>& outputs, const std::vector<Tensor>& grads = {},
              const BackwardOptions& options = {});

/// Runs `callback` once at the end of the backward pass that this thread is in, before backward() returns; callbacks of
/// one pass run by rising `order`, those of one order as they were given. For hooks, which see the pass from inside;
/// one that a callback gives runs last. An exception leaves through backward(). Throws UsageError outside a pass.
void after_backward(std::function<void()> callback, std::uint64_t order = 0);

/// The gradients of `output` with respect to `inputs` (leaves or results), without touching any leaf's grad(). Throws
/// UsageError for an input that no gradient reaches, unless allow_unused: then it gets an undefined tensor. Operations
/// that lead to none of the inputs do not run and keep what they saved. A gradient has its input's dtype: float32 for a
/// float32 parameter, also where autocast let the operations read its 16-bit compute copy. With create_graph the
/// gradients can be differentiated again; walking through an operation whose backward cannot throws UsageError naming
/// it.
[[nodiscard]] std::vector<Tensor> grad(const Tensor& output, const std::vector<Tensor>& inputs,
                                       const Tensor& grad_output = {}, const BackwardOptions& options = {});
/// The gradients of the sum of several outputs, each weighted by its gradient in `grad_outputs` (one an output, or
/// none).
[[nodiscard]] std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                                       const std::vector<Tensor>& grad_outputs = {},
                                       const BackwardOptions& options = {});

/// For an operation whose backward runs its forward pass again, recorded this time: walks the graph from `output`, with
/// the gradient `grad`, as a part of the pass of `context`. Returns a gradient for each of the operation's inputs, as
/// its backward does. `inputs`: they as the graph has them, each the input itself or a leaf in its place. Leaves that
/// are the inputs themselves get their gradients where the pass puts them, into the slots of an arena too: for these an
/// undefined tensor is returned. Throws UsageError where the graph leads anywhere but to the inputs.
[[nodiscard]] std::vector<Tensor> walk_again(const BackwardContext& context, const Tensor& output, const Tensor& grad,
                                             const std::vector<Tensor>& inputs);

}  // namespace lockstep::autograd
