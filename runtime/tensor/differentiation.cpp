// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/differentiation.h"

#include "runtime/tensor/error.h"

namespace lockstep {

namespace {

[[noreturn]] void refuse() {
  throw UsageError("this program is linked without automatic differentiation", "Link it with Lockstep::autograd.");
}

// Initialised by the compiler, so that it is there before anyone calls set_differentiation().
constinit Differentiation differentiation{
    [](const Tensor&) { return false; },
    [](const Tensor&, bool) { refuse(); },
    [](const Tensor&) { return Tensor(); },
    [](const Tensor&) { refuse(); },
};

}  // namespace

void set_differentiation(const Differentiation& functions) { differentiation = functions; }

bool Tensor::requires_grad() const { return differentiation.requires_grad(*this); }
void Tensor::set_requires_grad(bool requires_grad) const { differentiation.set_requires_grad(*this, requires_grad); }
Tensor Tensor::grad() const { return differentiation.grad(*this); }
void Tensor::backward() const { differentiation.backward(*this); }

}  // namespace lockstep
