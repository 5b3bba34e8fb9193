// SPDX-License-Identifier: Apache-2.0
// The automatic differentiation part of Tensor.
#include "runtime/autograd/engine.h"
#include "runtime/autograd/meta.h"
#include "runtime/tensor/error.h"
#include "runtime/tensor/tensor.h"

namespace lockstep {

bool Tensor::requires_grad() const { return impl_->meta && impl_->meta->requires_grad; }

void Tensor::set_requires_grad(bool requires_grad) const {
  if (!is_floating(dtype())) throw UsageError("only floating tensors have gradients, not " + describe(*this));
  autograd::Meta& meta = autograd::meta_of(*this);
  if (meta.producer) throw UsageError("set_requires_grad on the result of an operation: " + describe(*this));
  meta.requires_grad = requires_grad;
}

Tensor Tensor::grad() const {
  const autograd::Meta* meta = impl_->meta.get();
  if (meta == nullptr) return {};
  if (meta->slot.defined()) return meta->slot_filled ? meta->slot : Tensor();
  return meta->grad;
}

void Tensor::backward() const { autograd::backward(*this); }

}  // namespace lockstep
