// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "amp/autocast/policy.h"
#include "runtime/kernels/losses.h"

namespace lockstep::ops {

/// The loss of each pair by operations, for gradients that are differentiated again.
using PairTerms = std::function<Tensor(const Tensor& x, const Tensor& target)>;

/// weight * the sum of the function over all elements, in one pass; a scalar of x's dtype. x and target have one shape
/// and one dtype, float32 or float64. `terms` computes the same function.
Tensor sum_of_pairs(amp::Op op, const kernels::PairLossFunction& function, const Tensor& x, const Tensor& target,
                    double weight, PairTerms terms);

}  // namespace lockstep::ops
