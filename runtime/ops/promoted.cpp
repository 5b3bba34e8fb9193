// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/promoted.h"

#include <string>

#include "amp/autocast/autocast.h"
#include "runtime/autograd/cast.h"
#include "runtime/base/error.h"

namespace lockstep::ops {

Operands::Operands(amp::Op op, const Tensor& first, const Tensor& second)
    : a((require_defined(first, name_of(op), "the first operand"), first)),
      b((require_defined(second, name_of(op), "the second operand"), second)) {
  if (is_floating(a.dtype()) != is_floating(b.dtype())) {
    throw ShapeError(std::string(name_of(op)) + " of " + describe(a) + " and " + describe(b) +
                         ": one has integers, the other has not",
                     "Cast the integers: x.to(DType::kFloat32).");
  }
  a = amp::autocast_beside(op, first, second);
  b = amp::autocast_beside(op, second, first);
  // Outside autocast a policy other than promotion leaves operands as they come in.
  if (a.dtype() == b.dtype() || !is_floating(a.dtype()) || !is_floating(b.dtype())) return;
  const DType wider = promote(a.dtype(), b.dtype());
  a = autograd::cast(a, wider);
  b = autograd::cast(b, wider);
}

}  // namespace lockstep::ops
