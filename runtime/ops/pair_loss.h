// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "amp/autocast/policy.h"
#include "runtime/kernels/losses.h"

namespace lockstep::ops {

/// The loss of each pair by operations, for gradients that are differentiated again.
using PairTerms = std::function<Tensor(const Tensor& x, const Tensor& target)>;

/// An input of a loss of pairs as its kernel reads it: cast as the policy says, but left in 16 bits, which the kernel
/// reads exactly and computes in float32.
[[nodiscard]] Tensor pair_input(amp::Op op, const Tensor& input);
/// The other one beside x, in a dtype that the kernel takes there.
[[nodiscard]] Tensor pair_target(amp::Op op, const Tensor& x, const Tensor& target);

/// weight * the sum of the function over all elements, in one pass; a scalar, float64 for float64 x, else float32. x
/// and target have one shape and are what pair_input() and pair_target() give. `terms` computes the same function of x
/// and target in the scalar's dtype.
[[nodiscard]] Tensor sum_of_pairs(amp::Op op, const kernels::PairLossFunction& function, const Tensor& x,
                                  const Tensor& target, double weight, PairTerms terms);

}  // namespace lockstep::ops
