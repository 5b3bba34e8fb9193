// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "runtime/autograd/tensor_hooks.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::autograd {

class Node;

/// Lets the backward passes of one thread at a time into the leaves that share it.
class PassGuard {
 public:
  /// False where another thread's pass is in them.
  [[nodiscard]] bool enter();
  void leave();

 private:
  std::mutex mutex_;
  int passes_ = 0;
  std::thread::id thread_;
};

/// A tensor's place in the graph: the operation that made it, or, for a leaf, where its gradient goes.
struct Meta {
  bool requires_grad = false;
  /// The operation whose result this is; null for a leaf.
  std::shared_ptr<Node> producer;
  /// The number of this result among the operation's.
  std::size_t result = 0;
  /// Called with the gradient: of a leaf by the pass, of a result by its producer, which is there for that alone
  /// (tensor_hooks.h). Null where none was ever registered.
  std::shared_ptr<HookList<GradientHook>> hooks;

  // Leaves only -----------------------------------------------------------------------------------------------------

  std::string name;  ///< for messages; parameters are named when their module is
  /// The gradient collected so far, of a leaf without a slot.
  Tensor grad;
  /// A slice of the gradient arena that gradients are written into directly; undefined for a leaf outside an arena. Its
  /// dtype is the wire's, its shape the leaf's.
  Tensor slot;
  /// The view of the slot that grad() has shown since the slot was emptied, the same for all who asked. Undefined where
  /// nobody asked.
  Tensor shown;
  /// Held by whoever writes a gradient here, so that backward passes on several threads add to one another.
  std::mutex writing;
  /// Whether the slot holds a value: then the next gradient is added, otherwise it overwrites.
  bool slot_filled = false;
  /// Gradients that backward passes have written into the slot since it was emptied; none where its value has another
  /// origin.
  std::int64_t slot_gradients = 0;
  /// Whether the slot's gradients were unscaled: another backward pass would add scaled ones.
  bool slot_unscaled = false;
  /// The ScaleMark of the slot's gradients (scale_mark.h).
  std::uint64_t slot_mark = 0;
  /// The leaf's value in the compute dtype, which stands in for casts under autocast: written by the optimizer with the
  /// leaf, and by whoever reads it where the leaf was written since. Shares the leaf's version.
  Tensor compute_copy;
  /// The leaf's version at which it and its copy in the arena's other dtype were alike.
  std::uint64_t copied_version = 0;
  /// Called when a backward pass that reaches this leaf begins, before it writes any gradient.
  std::function<void()> on_pass_begin;
  /// Shared by the leaves whose hooks follow one pass; null where the hooks are called on any thread.
  std::shared_ptr<PassGuard> pass_guard;
  /// Called when a backward pass has added its last contribution to this leaf.
  std::function<void()> on_grad_ready;

  void require_scaled() const {
    if (slot_unscaled) refuse_gradient();
  }
  /// Has grad() follow the gradient to another slot.
  void move_slot(const Tensor& to);
  /// Before the slot is emptied: leaves its value, in memory of its own, to those who hold what grad() has shown.
  void keep_shown();

  [[noreturn]] void refuse_gradient() const;
  [[noreturn]] void refuse_thread() const;
  [[noreturn]] void refuse_scaler() const;
};

/// The meta of `tensor`, made if it has none.
Meta& meta_of(const Tensor& tensor);
/// Whether operations on `tensor` are recorded now: it requires a gradient and this thread records.
bool is_recorded(const Tensor& tensor);

}  // namespace lockstep::autograd
