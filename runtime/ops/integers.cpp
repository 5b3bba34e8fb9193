// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/integers.h"

#include <fmt/format.h>

#include <cmath>

#include "runtime/base/error.h"
#include "runtime/ops/shape.h"

namespace lockstep::ops {

namespace {

/// The order in which one integer dtype holds the numbers of another.
int rank_of(DType dtype) { return dtype == DType::kBool ? 0 : static_cast<int>(size_of(dtype)); }

}  // namespace

bool counts_in_integers(amp::Op op, const Tensor& x, std::optional<DType> dtype) {
  require_defined(x, name_of(op), "the input");
  return !is_floating(dtype.value_or(x.dtype()));
}

bool are_integers(amp::Op op, const Tensor& a, const Tensor& b) {
  require_defined(a, name_of(op), "the first operand");
  require_defined(b, name_of(op), "the second operand");
  return !is_floating(a.dtype()) && !is_floating(b.dtype());
}

Tensor in_integers(const Tensor& x, std::optional<DType> dtype, const std::function<Tensor(const Tensor&)>& operation) {
  const Tensor integers = cast(x.detach(), dtype.value_or(x.dtype()));
  return cast(operation(cast(integers, DType::kFloat64)), dtype.value_or(DType::kInt64));
}

Tensor in_integers(const Tensor& a, const Tensor& b,
                   const std::function<Tensor(const Tensor&, const Tensor&)>& operation) {
  const DType dtype = rank_of(a.dtype()) < rank_of(b.dtype()) ? b.dtype() : a.dtype();
  const Tensor result = operation(cast(a.detach(), DType::kFloat64), cast(b.detach(), DType::kFloat64));
  return cast(result, dtype);
}

Tensor in_integers(amp::Op op, const Tensor& x, double number,
                   const std::function<Tensor(const Tensor&, double)>& operation) {
  if (!std::isfinite(number) || number != std::floor(number)) {
    throw UsageError(fmt::format("{}: {} is not whole, and the tensor is {}", name_of(op), number, describe(x)),
                     "Cast the tensor first: x.to(DType::kFloat32).");
  }
  const DType dtype = x.dtype() == DType::kBool ? DType::kInt64 : x.dtype();
  return cast(operation(cast(x.detach(), DType::kFloat64), number), dtype);
}

}  // namespace lockstep::ops
