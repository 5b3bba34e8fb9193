// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "runtime/tensor/tensor.h"

namespace lockstep::autograd {

/// The gradients that a walk from `outputs` begins with: `grads`, one an output and each undefined or like its output;
/// without them, and where one is undefined, one of a scalar. Throws UsageError for an output without a graph and for
/// another number of gradients, ShapeError for a gradient of another shape or dtype and for none of what is no scalar.
std::vector<Tensor> initial_gradients(const std::vector<Tensor>& outputs, const std::vector<Tensor>& grads);

}  // namespace lockstep::autograd
