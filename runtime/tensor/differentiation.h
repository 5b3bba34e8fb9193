// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/tensor/tensor.h"

namespace lockstep {

/// What the members of Tensor for automatic differentiation call. A program that links runtime/autograd has its
/// functions here from the start; in any other no tensor requires a gradient, and asking for one throws UsageError.
struct Differentiation {
  bool (*requires_grad)(const Tensor& tensor);
  void (*set_requires_grad)(const Tensor& tensor, bool requires_grad);
  Tensor (*grad)(const Tensor& tensor);
  void (*backward)(const Tensor& tensor);
};

/// Called once, before main.
void set_differentiation(const Differentiation& functions);

}  // namespace lockstep
