// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/counter_rng.h"
#include "runtime/kernels/functors/activation.h"
#include "runtime/kernels/geometry/checks.h"
#include "runtime/kernels/reference/activation.h"
#include "runtime/kernels/reference/families.h"
#include "runtime/kernels/reference/values.h"

namespace lockstep::kernels::reference {

double activation(Activation kind, double x) {
  double y = x;
  if (kind != Activation::kNone) visit_activation(kind, [&](auto function) { y = function.exact(x); });
  return y;
}

double activation_derivative(Activation kind, double at) {
  double slope = 1;
  if (kind != Activation::kNone) visit_activation(kind, [&](auto function) { slope = function.exact_derivative(at); });
  return slope;
}

namespace {

void activate(Activation kind, const Tensor& x, const Tensor& y) {
  checks::same("activate", x, y);
  Values values = load(x);
  for (double& value : values) value = activation(kind, value);
  store(values, y);
}

void activate_backward(Activation kind, const Tensor& at, const Tensor& dy, const Tensor& dx) {
  checks::activate_backward(at, dy, dx);
  const Values places = load(at);
  Values gradients = load(dy);
  for (std::size_t i = 0; i < places.size(); ++i) gradients[i] *= activation_derivative(kind, places[i]);
  store(gradients, dx);
}

void dropout(const Tensor& x, double p, const DropoutKey& key, std::int64_t first_element, const Tensor& y) {
  checks::dropout(x, p, y);
  const StepPosition moved = key.position != nullptr ? *key.position : StepPosition{};
  const CounterRng rng(key.seed, CounterRng::Purpose::kDropout, key.layer, key.step + moved.step, key.call);
  if (x.numel() > 0) first_element += moved.first_sample * (x.numel() / x.size(0));
  Values values = load(x);
  for (std::size_t i = 0; i < values.size(); ++i) {
    // Compared in float, in which the number is drawn: every backend must keep the same elements.
    const bool keep = rng.uniform(static_cast<std::uint64_t>(first_element) + i) >= static_cast<float>(p);
    values[i] = keep ? values[i] / (1 - p) : 0;
  }
  store(values, y);
}

}  // namespace

const Pointwise kPointwise{.activate = activate, .activate_backward = activate_backward, .dropout = dropout};

}  // namespace lockstep::kernels::reference
