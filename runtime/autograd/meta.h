// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "runtime/tensor/tensor.h"

namespace lockstep::autograd {

class Node;

/// A tensor's place in the graph: the operation that made it, or, for a leaf, where its gradient goes.
struct Meta {
  bool requires_grad = false;
  /// The operation whose result this is; null for a leaf.
  std::shared_ptr<Node> producer;

  // Leaves only -----------------------------------------------------------------------------------------------------

  std::string name;  ///< for messages; parameters are named when their module is
  /// The gradient collected so far, of a leaf without a slot.
  Tensor grad;
  /// A slice of the gradient arena that gradients are written into directly; undefined for a leaf outside an arena. Its
  /// dtype is the wire's, its shape the leaf's.
  Tensor slot;
  /// Whether the slot holds a gradient: then the next one is added, otherwise it is overwritten.
  bool slot_filled = false;
  /// The leaf's value in the compute dtype, kept up to date by the optimizer; stands in for casts under autocast.
  Tensor compute_copy;
  /// Called when a backward pass has added its last contribution to this leaf.
  std::function<void()> on_grad_ready;
};

/// The meta of `tensor`, made if it has none.
Meta& meta_of(const Tensor& tensor);
/// Whether operations on `tensor` are recorded now: it requires a gradient and this thread records.
bool is_recorded(const Tensor& tensor);

}  // namespace lockstep::autograd
