// SPDX-License-Identifier: Apache-2.0
// The automatic differentiation part of Tensor.
#include "runtime/autograd/engine.h"
#include "runtime/autograd/meta.h"
#include "runtime/tensor/differentiation.h"
#include "runtime/tensor/error.h"
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
  const Meta* meta = tensor.autograd_meta().get();
  if (meta == nullptr) return {};
  if (meta->slot.defined()) return meta->slot_filled ? meta->slot : Tensor();
  return meta->grad;
}

void backward_of(const Tensor& tensor) { backward(tensor); }

}  // namespace

}  // namespace lockstep::autograd

/// What CMake has the linker look for in a program that links runtime/autograd, so that this file becomes part of it.
extern "C" const bool lockstep_autograd_is_linked = [] {
  using namespace lockstep;
  set_differentiation({autograd::requires_grad, autograd::set_requires_grad, autograd::grad_of, autograd::backward_of});
  return true;
}();
