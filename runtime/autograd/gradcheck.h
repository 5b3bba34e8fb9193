// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "runtime/tensor/tensor.h"

namespace lockstep::autograd {

/// A computation of tensors, the same at every call.
using Computation = std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs)>;

/// Bounds of |gradient - difference|: absolute + relative * |difference|. The defaults are PyTorch's.
struct GradcheckOptions {
  double step = 1e-6;  ///< of the central differences
  double relative = 1e-3;
  double absolute = 1e-5;
};

/// Compares the gradient of every element of every output, by every element of every input that requires one, with a
/// central difference. The computation gets copies of the inputs, and runs twice for each of their elements. Throws
/// NumericsError that names the first element with a wrong gradient, and UsageError where nothing can be compared: an
/// input that requires a gradient and is no float64, no such input, an output that depends on none, or a computation
/// that gives other numbers at a second call.
void gradcheck(const Computation& function, const std::vector<Tensor>& inputs, const GradcheckOptions& options = {});

/// gradcheck() of the gradients of `function`, by its inputs and by the gradients of its outputs, for which it takes
/// numbers of its own: whether create_graph gives what can be differentiated again. A gradient without a graph counts
/// as a constant, whose differences have to be 0.
void gradgradcheck(const Computation& function, const std::vector<Tensor>& inputs,
                   const GradcheckOptions& options = {});

}  // namespace lockstep::autograd
