// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "amp/autocast/autocast.h"
#include "runtime/nn/module.h"
#include "runtime/nn/step_context.h"
#include "runtime/ops/ops.h"
#include "tests/runtime/kernels/tensors.h"

namespace lockstep::model_zoo {

/// Of each parameter, after the backward pass of loss(model): in the first step, under autocast to `dtype` where there
/// is one, times a scale that keeps those of fp16 out of the subnormal numbers.
inline std::vector<std::vector<double>> gradients_of(nn::Module& model,
                                                     const std::function<Tensor(nn::Module& model)>& loss,
                                                     std::optional<DType> dtype = {}) {
  constexpr double kScale = 1024;
  const nn::StepContext context(1, 0);
  {
    const std::unique_ptr<amp::Autocast> autocast = dtype ? std::make_unique<amp::Autocast>(*dtype) : nullptr;
    ops::scale(loss(model), kScale).backward();
  }
  std::vector<std::vector<double>> gradients;
  for (const nn::Parameter& parameter : model.parameters()) {
    gradients.push_back(kernels::testing::values_of(parameter.tensor.grad()));
  }
  return gradients;
}

/// Of the parameters' gradients the largest distance, beside the gradient's norm; of those that are 0 none.
inline double distance_between(const std::vector<std::vector<double>>& exact,
                               const std::vector<std::vector<double>>& others) {
  double worst = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    double norm = 0, distance = 0;
    for (std::size_t j = 0; j < exact[i].size(); ++j) {
      norm += exact[i][j] * exact[i][j];
      distance += std::pow(others[i][j] - exact[i][j], 2);
    }
    if (norm > 0) worst = std::max(worst, std::sqrt(distance / norm));
  }
  return worst;
}

}  // namespace lockstep::model_zoo
