// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <source_location>
#include <string>
#include <vector>

#include "runtime/autograd/engine.h"
#include "runtime/autograd/grad_mode.h"
#include "tests/runtime/kernels/numeric_gradient.h"
#include "tests/runtime/kernels/tensors.h"

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

/// Checks the recorded backward: its gradients are those of the fused one, and the gradients of sum_i <gradient i,
/// direction i> with respect to every input and to the output's gradient are central differences of it. `inputs` as in
/// expect_gradients.
inline void expect_second_gradients(const Function& function, const std::vector<Tensor>& inputs,
                                    const kernels::testing::Bounds& bounds = {.relative = 1e-6, .absolute = 1e-6},
                                    const std::source_location& where = std::source_location::current()) {
  for (const Tensor& input : inputs) input.set_requires_grad(true);
  const Tensor output = function(inputs);
  const Tensor weights = output_gradient(output);
  weights.set_requires_grad(true);
  const std::vector<Tensor> fused = autograd::grad(output, inputs, weights, {.retain_graph = true});
  const std::vector<Tensor> recorded = autograd::grad(output, inputs, weights, {.create_graph = true});
  std::vector<Tensor> directions, outputs, seeds;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    SCOPED_TRACE("recorded gradient of input " + std::to_string(i));
    ASSERT_TRUE(recorded[i].defined());
    kernels::testing::expect_close(recorded[i], fused[i], {.relative = 1e-9, .absolute = 1e-9}, where);
    directions.push_back(kernels::testing::random_tensor(inputs[i].shape(), DType::kFloat64, 177 + i, 0.5, 1.5));
    if (!recorded[i].requires_grad()) continue;  // a constant
    outputs.push_back(recorded[i]);
    seeds.push_back(directions.back());
  }
  const auto scalar = [&] {
    const std::vector<Tensor> now = autograd::grad(function(inputs), inputs, weights.detach());
    double sum = 0;
    for (std::size_t i = 0; i < now.size(); ++i) {
      for (std::int64_t at = 0; at < now[i].numel(); ++at) sum += now[i].item(at) * directions[i].item(at);
    }
    return sum;
  };
  std::vector<Tensor> of = inputs;
  of.push_back(weights);
  std::vector<Tensor> second(of.size());
  if (!outputs.empty()) second = autograd::grad(outputs, of, seeds, {.allow_unused = true});
  for (std::size_t i = 0; i < of.size(); ++i) {
    SCOPED_TRACE("second gradient, of input " + std::to_string(i));
    const Tensor found = second[i].defined() ? second[i] : Tensor::zeros(of[i].shape(), DType::kFloat64);
    kernels::testing::expect_close(found, numeric_gradient(scalar, of[i]), bounds, where);
  }
}

}  // namespace lockstep::testing
