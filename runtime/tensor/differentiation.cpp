// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/differentiation.h"

#include "runtime/base/error.h"

namespace lockstep {

namespace {

[[noreturn]] void refuse() {
  throw UsageError("this program is linked without automatic differentiation", "Link it with Lockstep::autograd.");
}

// Initialised by the compiler, so that it is there before anyone calls set_differentiation().
constinit Differentiation in_use{
    .requires_grad = [](const Tensor&) { return false; },
    .set_requires_grad = [](const Tensor&, bool) { refuse(); },
    .grad = [](const Tensor&) { return Tensor(); },
    .backward = [](const Tensor&) { refuse(); },
    .cast = [](const Tensor&, DType) -> Tensor { refuse(); },
    .record_to = [](const Tensor&, const Tensor&) {},
    .record_reshape = [](const Tensor&, const Tensor&) {},
    .record_rows = [](const Tensor&, const Tensor&, std::int64_t) {},
    .record_copy = [](const Tensor&, const Tensor&) {},
    .require_writable = [](const Tensor&, std::string_view) {},
    .require_copyable = [](const Tensor&, const Tensor&) {},
};

}  // namespace

void set_differentiation(const Differentiation& functions) { in_use = functions; }
const Differentiation& differentiation() { return in_use; }

bool Tensor::requires_grad() const { return defined() && in_use.requires_grad(*this); }
void Tensor::set_requires_grad(bool requires_grad) const {
  require_defined(*this, "set_requires_grad", "the tensor");
  in_use.set_requires_grad(*this, requires_grad);
}
Tensor Tensor::grad() const { return defined() ? in_use.grad(*this) : Tensor(); }
void Tensor::backward() const { in_use.backward(*this); }
Tensor Tensor::to(DType dtype) const { return dtype == this->dtype() ? *this : in_use.cast(*this, dtype); }

}  // namespace lockstep
