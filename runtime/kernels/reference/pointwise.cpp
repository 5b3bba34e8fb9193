// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/pointwise.h"

#include <cmath>
#include <numbers>

#include "runtime/base/counter_rng.h"
#include "runtime/kernels/functors/random.h"
#include "runtime/kernels/functors/unary.h"
#include "runtime/kernels/geometry/operand_checks.h"
#include "runtime/kernels/reference/families.h"
#include "runtime/kernels/reference/unary.h"
#include "runtime/kernels/reference/values.h"

namespace lockstep::kernels::reference {

double unary(const UnaryFunction& which, double x) {
  double y = 0;
  visit_unary(which, [&](const auto& function) { y = function.exact(x); });
  return y;
}

double unary_derivative(const UnaryFunction& which, double at) {
  double slope = 0;
  visit_unary(which, [&](const auto& function) { slope = function.exact_derivative(at); });
  return slope;
}

namespace {

void unary(const UnaryFunction& function, const Tensor& x, const Tensor& y) {
  checks::same("unary", x, y);
  Values values = load(x);
  for (double& value : values) value = reference::unary(function, value);
  store(values, y);
}

void unary_backward(const UnaryFunction& function, const Tensor& at, const Tensor& dy, const Tensor& dx) {
  checks::unary_backward(at, dy, dx);
  const Values places = load(at);
  Values gradients = load(dy);
  for (std::size_t i = 0; i < places.size(); ++i) gradients[i] *= unary_derivative(function, places[i]);
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

void random(Distribution distribution, double first, double second, const RandomKey& key, std::int64_t first_element,
            const Tensor& out) {
  checks::random(first_element, out);
  const CounterRng rng = stream_of(key);
  Values values(static_cast<std::size_t>(out.numel()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t number = static_cast<std::uint64_t>(first_element) + i;
    const std::uint32_t bits[2] = {rng.at(number / 2 * 2), rng.at(number / 2 * 2 + 1)};
    if (distribution == Distribution::kUniform) {
      values[i] = first + (second - first) * static_cast<double>(uniform_from_bits(bits[number % 2]));
    } else {
      const double radius = std::sqrt(-2 * std::log(((bits[0] >> 9) + 0.5) * 0x1p-23));
      const double angle = 2 * std::numbers::pi * static_cast<double>(uniform_from_bits(bits[1]));
      values[i] = first + second * radius * (number % 2 == 0 ? std::cos(angle) : std::sin(angle));
    }
  }
  store(values, out);
}

}  // namespace

const Pointwise kPointwise{.unary = unary, .unary_backward = unary_backward, .dropout = dropout, .random = random};

}  // namespace lockstep::kernels::reference
