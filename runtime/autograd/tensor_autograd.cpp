// SPDX-License-Identifier: Apache-2.0
// The automatic differentiation part of Tensor.
#include <mutex>

#include "runtime/autograd/cast.h"
#include "runtime/autograd/engine.h"
#include "runtime/autograd/meta.h"
#include "runtime/autograd/movement.h"
#include "runtime/base/error.h"
#include "runtime/tensor/differentiation.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::autograd {

namespace {

bool requires_grad(const Tensor& tensor) {
  const Meta* meta = tensor.autograd_meta().get();
  return meta != nullptr && meta->requires_grad;
}

void set_requires_grad(const Tensor& tensor, bool requires_grad) {
  if (!is_floating(tensor.dtype())) throw UsageError("only floating tensors have gradients, not " + describe(tensor));
  Meta& meta = meta_of(tensor);
  if (meta.producer) throw UsageError("set_requires_grad on the result of an operation: " + describe(tensor));
  meta.requires_grad = requires_grad;
}

Tensor grad_of(const Tensor& tensor) {
  Meta* meta = tensor.autograd_meta().get();
  if (meta == nullptr) return {};
  const std::lock_guard lock(meta->writing);
  if (!meta->slot.defined()) return meta->grad;
  if (!meta->slot_filled) return {};
  if (!meta->shown.defined()) meta->shown = meta->slot.detach();
  return meta->shown;
}

void backward_of(const Tensor& tensor) { backward(tensor); }

}  // namespace

}  // namespace lockstep::autograd

/// A symbol that CMake has the linker look for in a program that links runtime/autograd, so that this file becomes part
/// of it.
extern "C" const bool lockstep_autograd_is_linked = [] {
  using namespace lockstep;
  set_differentiation({.requires_grad = autograd::requires_grad,
                       .set_requires_grad = autograd::set_requires_grad,
                       .grad = autograd::grad_of,
                       .backward = autograd::backward_of,
                       .cast = autograd::cast,
                       .record_to = autograd::record_to,
                       .record_reshape = autograd::record_reshape,
                       .record_rows = autograd::record_rows,
                       .record_copy = autograd::record_copy,
                       .require_writable = autograd::require_writable,
                       .require_copyable = autograd::require_copyable});
  return true;
}();
