// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <source_location>
#include <string>
#include <vector>

#include "runtime/autograd/engine.h"
#include "runtime/autograd/grad_mode.h"
#include "tests/runtime/kernels/kernel_fixture.h"
#include "tests/runtime/kernels/numeric_gradient.h"

namespace lockstep::testing {

/// A differentiable computation with one result.
using Function = std::function<Tensor(const std::vector<Tensor>& inputs)>;

/// Numbers in [0.5, 1.5) of the output's shape, where it lies: what the gradient checks multiply an output with to get
/// a scalar. Of one sign, so that no gradient is lost in cancellation.
inline Tensor output_gradient(const Tensor& output) {
  return kernels::testing::random_tensor(output.shape(), output.dtype(), 77, 0.5, 1.5).to(output.device());
}

/// Compares the gradients of sum(output * output_gradient) with central differences, for every element of every input.
/// `inputs` are float64 and become leaves; `function` reads them anew at every call.
inline void expect_gradients(const Function& function, const std::vector<Tensor>& inputs,
                             const kernels::testing::Bounds& bounds = {.relative = 1e-6, .absolute = 1e-7},
                             const std::source_location& where = std::source_location::current()) {
  for (const Tensor& input : inputs) input.set_requires_grad(true);
  const Tensor output = function(inputs);
  ASSERT_EQ(output.dtype(), DType::kFloat64);
  const Tensor weights = output_gradient(output);
  const std::vector<Tensor> gradients = autograd::grad(output, inputs, weights);
  const auto scalar = [&] {
    const autograd::NoGrad no_grad;
    const Tensor now = function(inputs);
    double sum = 0;
    for (std::int64_t i = 0; i < now.numel(); ++i) sum += now.item(i) * weights.item(i);
    return sum;
  };
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    SCOPED_TRACE("gradient of input " + std::to_string(i));
    ASSERT_TRUE(gradients[i].defined());
    EXPECT_EQ(gradients[i].shape(), inputs[i].shape());
    kernels::testing::expect_close(gradients[i], numeric_gradient(scalar, inputs[i]), bounds, where);
  }
}

}  // namespace lockstep::testing
