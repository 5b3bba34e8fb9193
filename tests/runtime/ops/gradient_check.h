// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <source_location>
#include <string>
#include <vector>

#include "runtime/autograd/engine.h"
#include "runtime/autograd/gradcheck.h"
#include "tests/runtime/kernels/function_ref.h"
#include "tests/runtime/kernels/tensors.h"

namespace lockstep::testing {

/// A differentiable computation with one result: to keep, and as a call is given it.
using Function = std::function<Tensor(const std::vector<Tensor>& inputs)>;
using FunctionRef = kernels::testing::FunctionRef<Tensor(const std::vector<Tensor>& inputs)>;

/// Numbers in [0.5, 1.5) of the output's shape, where it lies: what a backward pass begins with in tests that compare
/// gradients. Of one sign, so that no gradient is lost in cancellation.
inline Tensor output_gradient(const Tensor& output) {
  return kernels::testing::random_tensor(output.shape(), output.dtype(), 77, 0.5, 1.5).to(output.device());
}

/// autograd::gradcheck() of the function by all inputs, which are float64 and become leaves.
inline void expect_gradients(FunctionRef function, const std::vector<Tensor>& inputs,
                             const kernels::testing::Bounds& bounds = {.relative = 1e-6, .absolute = 1e-7},
                             const std::source_location& where = std::source_location::current()) {
  const ::testing::ScopedTrace trace(where.file_name(), static_cast<int>(where.line()), "expect_gradients");
  for (const Tensor& input : inputs) input.set_requires_grad(true);
  EXPECT_NO_THROW(autograd::gradcheck([&](const auto& in) { return std::vector{function(in)}; }, inputs,
                                      {.step = 1e-5, .relative = bounds.relative, .absolute = bounds.absolute}));
}

/// Checks the recorded backward: its gradients are those of the fused one, and autograd::gradgradcheck(). `inputs` as
/// in expect_gradients.
inline void expect_second_gradients(FunctionRef function, const std::vector<Tensor>& inputs,
                                    const kernels::testing::Bounds& bounds = {.relative = 1e-6, .absolute = 1e-6},
                                    const std::source_location& where = std::source_location::current()) {
  const ::testing::ScopedTrace trace(where.file_name(), static_cast<int>(where.line()), "expect_second_gradients");
  for (const Tensor& input : inputs) input.set_requires_grad(true);
  const Tensor output = function(inputs);
  const Tensor weights = output_gradient(output);
  const std::vector<Tensor> fused = autograd::grad(output, inputs, weights, {.retain_graph = true});
  const std::vector<Tensor> recorded = autograd::grad(output, inputs, weights, {.create_graph = true});
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    SCOPED_TRACE("recorded gradient of input " + std::to_string(i));
    ASSERT_TRUE(recorded[i].defined());
    kernels::testing::expect_close(recorded[i], fused[i], {.relative = 1e-9, .absolute = 1e-9}, where);
  }
  EXPECT_NO_THROW(autograd::gradgradcheck([&](const auto& in) { return std::vector{function(in)}; }, inputs,
                                          {.step = 1e-5, .relative = bounds.relative, .absolute = bounds.absolute}));
}

}  // namespace lockstep::testing
