// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/tensor/tensor.h"

namespace lockstep::autograd {

/// A new tensor, a + b in the wider of their dtypes, recorded.
Tensor sum_of_gradients(const Tensor& a, const Tensor& b);

/// The sum of the gradients that arrive at one tensor. The first one is shared with whoever made it, so only a sum that
/// was made here may be added to in place.
struct GradientSum {
  Tensor sum;
  Tensor addend;  ///< the last one, where whoever takes the sum adds it
  bool owned = false;

  /// `recorded`: the sum is to have a graph, so that nothing is added in place.
  void add(const Tensor& grad, bool recorded);
  /// Leaves the last gradient as the addend.
  void add_all_but(const Tensor& last);
};

}  // namespace lockstep::autograd
