// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/reference/activation.h"

#include <cmath>
#include <numbers>

#include "runtime/kernels/geometry/checks.h"
#include "runtime/kernels/reference/reference_backend.h"
#include "runtime/kernels/reference/values.h"

namespace lockstep::kernels {

namespace {

// The argument of gelu_tanh's tanh, and its derivative.
const double kSlope = std::sqrt(2 / std::numbers::pi);
constexpr double kCubic = 0.044715;

double gelu_tanh_argument(double x) { return kSlope * (x + kCubic * x * x * x); }
double gelu_tanh_argument_derivative(double x) { return kSlope * (1 + 3 * kCubic * x * x); }

}  // namespace

double activation(Activation kind, double x) {
  switch (kind) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return x < 0 ? 0 : x;  // NaN stays
    case Activation::kGelu:
      return x * (1 + std::erf(x / std::numbers::sqrt2)) / 2;
    case Activation::kGeluTanh:
      return x * (1 + std::tanh(gelu_tanh_argument(x))) / 2;
  }
  return x;
}

double activation_derivative(Activation kind, double x) {
  switch (kind) {
    case Activation::kNone:
      return 1;
    case Activation::kRelu:
      return x > 0 ? 1 : 0;
    case Activation::kGelu: {
      const double density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
      return (1 + std::erf(x / std::numbers::sqrt2)) / 2 + x * density;
    }
    case Activation::kGeluTanh: {
      const double tanh = std::tanh(gelu_tanh_argument(x));
      return (1 + tanh) / 2 + x * (1 - tanh * tanh) / 2 * gelu_tanh_argument_derivative(x);
    }
  }
  return 1;
}

void ReferenceBackend::activate(Activation kind, const Tensor& x, const Tensor& y) {
  checks::same("activate", x, y);
  Values values = load(x);
  for (double& value : values) value = activation(kind, value);
  store(values, y);
}

void ReferenceBackend::activate_backward(Activation kind, const Tensor& x, const Tensor& dy, const Tensor& dx) {
  checks::activate_backward(x, dy, dx);
  const Values inputs = load(x);
  Values gradients = load(dy);
  for (std::size_t i = 0; i < inputs.size(); ++i) gradients[i] *= activation_derivative(kind, inputs[i]);
  store(gradients, dx);
}

}  // namespace lockstep::kernels
