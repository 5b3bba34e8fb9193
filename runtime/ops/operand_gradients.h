// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/autograd/node.h"

namespace lockstep::ops {

/// Computes the gradient of operand number i for every element of the result, in grad's dtype. The gradient of a
/// broadcast operand is summed afterwards.
using OperandGradient =
    std::function<Tensor(const Tensor& grad, const autograd::BackwardContext& context, std::size_t i)>;

/// The operands whose 16-bit gradient is computed in float32 for every element, and rounded once behind the sum.
enum class Wide : std::uint8_t {
  kNever,   ///< none: no element of the gradient is rounded
  kSummed,  ///< those that were broadcast
  kAlways,  ///< all: the gradient would be rounded more than twice on the way
};

/// A saved operand in grad's dtype.
[[nodiscard]] Tensor operand(const autograd::SavedTensor& saved, const Tensor& grad,
                             const autograd::BackwardContext& context);

/// The backward of an operation, element by element, on operands that may have been broadcast to `result`.
[[nodiscard]] autograd::Backward backward_of(const std::vector<Tensor>& operands, const Tensor& result, Wide wide,
                                             OperandGradient gradient);

}  // namespace lockstep::ops
