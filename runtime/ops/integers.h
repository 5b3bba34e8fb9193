// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>

#include "amp/autocast/policy.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::ops {

/// Whether sums and products of x, into `dtype` where it is named, are integers or bool. Throws UsageError, which names
/// the operation, where x is undefined.
[[nodiscard]] bool counts_in_integers(amp::Op op, const Tensor& x, std::optional<DType> dtype);

/// Whether both operands have integers or bool. Throws UsageError, which names the operation, where one is undefined.
[[nodiscard]] bool are_integers(amp::Op op, const Tensor& a, const Tensor& b);

/// `operation` on x, which is cast to the named dtype first, in the named dtype, else in int64. It is computed in
/// float64: exact as long as no number in it passes 2^53. What lies outside the dtype's range becomes its nearest end.
/// No gradient.
[[nodiscard]] Tensor in_integers(const Tensor& x, std::optional<DType> dtype,
                                 const std::function<Tensor(const Tensor&)>& operation);

/// `operation` on a and b in the wider dtype of the two, computed in the same way.
[[nodiscard]] Tensor in_integers(const Tensor& a, const Tensor& b,
                                 const std::function<Tensor(const Tensor&, const Tensor&)>& operation);
/// `operation` on x and a number, in x's dtype, of bool in int64. Throws UsageError, which names the operation, for a
/// number that is not whole.
[[nodiscard]] Tensor in_integers(amp::Op op, const Tensor& x, double number,
                                 const std::function<Tensor(const Tensor&, double)>& operation);

}  // namespace lockstep::ops
