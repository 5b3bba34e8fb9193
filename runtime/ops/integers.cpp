// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/integers.h"

#include "runtime/ops/shape.h"

namespace lockstep::ops {

bool counts_in_integers(amp::Op op, const Tensor& x, std::optional<DType> dtype) {
  require_defined(x, name_of(op), "the input");
  return !is_floating(dtype.value_or(x.dtype()));
}

Tensor in_integers(const Tensor& x, std::optional<DType> dtype, const std::function<Tensor(const Tensor&)>& operation) {
  const Tensor integers = cast(x.detach(), dtype.value_or(x.dtype()));
  return cast(operation(cast(integers, DType::kFloat64)), dtype.value_or(DType::kInt64));
}

}  // namespace lockstep::ops
