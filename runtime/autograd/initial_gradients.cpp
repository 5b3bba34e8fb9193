// SPDX-License-Identifier: Apache-2.0
#include "runtime/autograd/initial_gradients.h"

#include <string>

#include "runtime/base/error.h"
#include "runtime/kernels/assign.h"

namespace lockstep::autograd {

namespace {

Tensor initial_gradient(const Tensor& output, const Tensor& grad) {
  if (!output.defined() || !output.requires_grad()) {
    throw UsageError("backward from " + describe(output) + ", which no recorded operation on a leaf made",
                     "Call set_requires_grad(true) on a leaf, and run the forward pass outside NoGrad.");
  }
  if (grad.defined()) {
    if (grad.shape() != output.shape() || grad.dtype() != output.dtype()) {
      throw ShapeError("the gradient of " + describe(output) + " has its shape and dtype, not " + describe(grad));
    }
    return grad;
  }
  if (output.numel() != 1) {
    throw ShapeError("backward without a gradient needs a scalar, not " + describe(output));
  }
  const Tensor one = Tensor::empty(output.shape(), output.dtype(), output.device());
  kernels::fill(one, 1.0);
  return one;
}

}  // namespace

std::vector<Tensor> initial_gradients(const std::vector<Tensor>& outputs, const std::vector<Tensor>& grads) {
  if (!grads.empty() && grads.size() != outputs.size()) {
    throw UsageError(std::to_string(grads.size()) + " gradients for " + std::to_string(outputs.size()) + " outputs");
  }
  std::vector<Tensor> initial;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    initial.push_back(initial_gradient(outputs[i], grads.empty() ? Tensor() : grads[i]));
  }
  return initial;
}

}  // namespace lockstep::autograd
