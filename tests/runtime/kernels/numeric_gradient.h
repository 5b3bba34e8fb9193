// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "runtime/tensor/tensor.h"

namespace lockstep::testing {

/// The gradient of f with respect to each element of the float64 tensor x, which f reads anew at every call, by central
/// differences. Where f is smooth and of magnitude 1 the error is about 1e-9.
inline std::vector<double> numeric_gradient(const std::function<double()>& f, const Tensor& x, double step = 1e-5) {
  std::vector<double> gradient;
  for (double& element : x.mutable_as<double>()) {
    const double value = element;
    element = value + step;
    const double above = f();
    element = value - step;
    const double below = f();
    element = value;
    gradient.push_back((above - below) / (2 * step));
  }
  return gradient;
}

}  // namespace lockstep::testing
