// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/reference/optimizer_steps.h"

#include <algorithm>
#include <cmath>

#include "runtime/kernels/geometry/operand_checks.h"
#include "runtime/kernels/reference/values.h"

namespace lockstep::kernels::reference {

namespace {

/// A segment that has a gradient in the step.
struct Layer {
  const ArenaSegment& segment;
  std::size_t begin;  ///< in the slice
  std::size_t end;
  double lr;
  double decay;
  double steps;                      ///< applied to its parameter before
  const LayerRate* rate;             ///< of LARC or LARS; null: none
  const std::vector<double>& grads;  ///< of the slice, unscaled and clipped
  std::vector<double>& weights;      ///< of the slice

  /// The gradient plus weight decay: LARC's or LARS's, scaled, where `rate` is set, else the rule's own if `coupled`.
  double gradient(std::size_t at, bool coupled = true) const {
    if (rate != nullptr) {
      return static_cast<double>(rate->rate) * (grads[at] + static_cast<double>(rate->decay) * weights[at]);
    }
    return grads[at] + (coupled ? decay * weights[at] : 0.0);
  }
  /// Weight decay that acts on the weight itself.
  double decoupled_decay() const { return rate != nullptr ? 0.0 : decay; }
  /// 1 - beta^step, or 1 without a correction.
  double bias_correction(double beta, bool corrected = true) const {
    return corrected ? 1 - std::pow(beta, steps + 1) : 1.0;
  }
  /// The sums of squares of the weights and of what `other` gives for each element.
  template <class Other>
  double norm_of(Other other) const {
    double sum = 0;
    for (std::size_t at = begin; at < end; ++at) sum += other(at) * other(at);
    return std::sqrt(sum);
  }
  double weight_norm() const {
    return norm_of([this](std::size_t at) { return weights[at]; });
  }
  double gradient_norm() const {
    return norm_of([this](std::size_t at) { return grads[at]; });
  }
};

/// Calls update(layer) for every segment that has a gradient, unless the step is skipped; then writes the weights.
template <class Update>
void for_each_layer(const ArenaSlice& slice, const StepScalars& scalars, Update update) {
  if (scalars.found_inf != nullptr && *scalars.found_inf != 0) return;
  const auto or_one = [](const float* scalar) { return scalar == nullptr ? 1.0 : static_cast<double>(*scalar); };
  const double factor = or_one(scalars.inverse_scale) * or_one(scalars.clip);
  const double limit = scalars.clip_value > 0 ? static_cast<double>(scalars.clip_value) : INFINITY;
  Values grads = load(slice.grad);
  for (double& grad : grads) grad = std::clamp(grad * factor, -limit, limit);
  Values master = load(slice.master);
  Values copy = slice.copy.defined() ? load(slice.copy) : Values(master.size());
  for (const ArenaSegment& segment : slice.segments) {
    const std::int32_t parameter = segment.parameter;
    if (scalars.has_gradient != nullptr && scalars.has_gradient[parameter] == 0) continue;
    const bool has_rate = scalars.layer_rates != nullptr && segment.adapts != 0;
    const Layer layer{.segment = segment,
                      .begin = static_cast<std::size_t>(segment.begin - slice.base),
                      .end = static_cast<std::size_t>(segment.end - slice.base),
                      .lr = static_cast<double>(*scalars.learning_rate) * segment.lr_scale,
                      .decay = segment.weight_decay,
                      .steps = scalars.steps != nullptr ? static_cast<double>(scalars.steps[parameter]) : 0.0,
                      .rate = has_rate ? scalars.layer_rates + parameter : nullptr,
                      .grads = grads,
                      .weights = master};
    update(layer);
    for (std::size_t at = layer.begin; at < layer.end; ++at) {
      master[at] = rounded(master[at], slice.master_precision);
      copy[at] = master[at];
    }
  }
  store(master, slice.master);
  if (slice.copy.defined()) store(copy, slice.copy);
}

/// Replaces every weight of every layer by update(layer, at, weight).
template <class Update>
void for_each_weight(const ArenaSlice& slice, const StepScalars& scalars, Update update) {
  for_each_layer(slice, scalars, [&](const Layer& layer) {
    for (std::size_t at = layer.begin; at < layer.end; ++at) {
      layer.weights[at] = update(layer, at, layer.weights[at]);
    }
  });
}

}  // namespace

void layer_rates(const ArenaSlice& slice, const LayerRateRule& rule, const StepScalars& scalars, const Tensor& rates) {
  checks::layer_rates(slice, rates);
  Values table = load(rates);
  for_each_layer(slice, scalars, [&](const Layer& layer) {
    if (layer.segment.adapts == 0) return;
    double& rate = table[2 * static_cast<std::size_t>(layer.segment.parameter)];
    double& decay = table[2 * static_cast<std::size_t>(layer.segment.parameter) + 1];
    const double weight = layer.weight_norm(), gradient = layer.gradient_norm();
    rate = 1;
    decay = rule.decay_without_norm ? layer.decay : 0.0;
    if (weight == 0 || gradient == 0) return;
    decay = layer.decay;
    rate = rule.trust_coefficient * weight / (gradient + decay * weight + rule.epsilon);
    if (rule.clip) rate = std::min(rate / layer.lr, 1.0);
  });
  store(table, rates);
}

namespace {

/// The states of all elements.
using States = std::vector<Values>;

// The rules on one element: each returns the new weight.

double moved(const SgdRule& rule, const Layer& layer, std::size_t at, double weight, States& states) {
  const double mu = rule.momentum;
  const double grad = (rule.rate_in_momentum ? layer.lr : 1.0) * layer.gradient(at);
  double direction = grad;
  if (rule.momentum != 0) {
    double& v = states[0][at];
    v = layer.steps == 0 ? grad : mu * v + (1 - static_cast<double>(rule.dampening)) * grad;
    direction = rule.nesterov ? grad + mu * v : v;
  }
  return weight - (rule.rate_in_momentum ? 1.0 : layer.lr) * direction;
}

double moved(const AdamRule& rule, const Layer& layer, std::size_t at, double weight, States& states) {
  const double grad = layer.gradient(at, !rule.decoupled);
  if (rule.decoupled) weight *= 1 - layer.lr * layer.decoupled_decay();
  double &mean = states[0][at], &square = states[1][at];
  mean = rule.beta1 * mean + (1 - rule.beta1) * grad;
  square = rule.beta2 * square + (1 - rule.beta2) * grad * grad;
  double largest = square;
  if (rule.amsgrad) largest = states[2][at] = std::max(states[2][at], square);
  const double root = std::sqrt(largest / layer.bias_correction(rule.beta2));
  return weight - layer.lr / layer.bias_correction(rule.beta1) * mean / (root + rule.epsilon);
}

double moved(const AdagradRule& rule, const Layer& layer, std::size_t at, double weight, States& states) {
  const double lr = layer.lr / (1 + layer.steps * rule.lr_decay);
  const double grad = layer.gradient(at, !rule.decoupled);
  if (rule.decoupled) weight *= 1 - lr * layer.decoupled_decay();
  double& sum = states[0][at];
  sum += grad * grad;
  return weight - lr * grad / (std::sqrt(sum) + rule.epsilon);
}

double moved(const RmspropRule& rule, const Layer& layer, std::size_t at, double weight, States& states) {
  const double grad = layer.gradient(at);
  double& square = states[0][at];
  square = rule.alpha * square + (1 - rule.alpha) * grad * grad;
  double variance = square;
  if (rule.centered) {
    double& mean = states[1][at];
    mean = rule.alpha * mean + (1 - rule.alpha) * grad;
    variance = std::max(square - mean * mean, 0.0);
  }
  double direction = grad / (std::sqrt(variance) + rule.epsilon);
  if (rule.momentum != 0) {
    double& velocity = states.back()[at];
    direction = velocity = static_cast<double>(rule.momentum) * velocity + direction;
  }
  return weight - layer.lr * direction;
}

double moved(const LionRule& rule, const Layer& layer, std::size_t at, double weight, States& states) {
  const double grad = layer.gradient(at, false);
  weight *= 1 - layer.lr * layer.decoupled_decay();
  double& mean = states[0][at];
  const double direction = rule.beta1 * mean + (1 - rule.beta1) * grad;
  mean = rule.beta2 * mean + (1 - rule.beta2) * grad;
  return weight - layer.lr * static_cast<double>((direction > 0) - (direction < 0));
}

}  // namespace

void element_step(const ArenaSlice& slice, const ElementRule& rule, const StepScalars& scalars,
                  const std::vector<Tensor>& states) {
  checks::element_step(slice, states_of(rule), states);
  States values;
  for (const Tensor& state : states) values.push_back(load(state));
  const auto step = [&](const auto& of) {
    for_each_weight(slice, scalars, [&](const Layer& layer, std::size_t at, double weight) {
      return moved(of, layer, at, weight, values);
    });
  };
  std::visit(step, rule);
  for (std::size_t i = 0; i < states.size(); ++i) store(values[i], states[i]);
}

void lamb_step(const ArenaSlice& slice, const LambRule& rule, const StepScalars& scalars, const Tensor& m,
               const Tensor& v) {
  checks::arena_slice("lamb_step", slice);
  checks::optimizer_state("lamb_step", "m", slice, m);
  checks::optimizer_state("lamb_step", "v", slice, v);
  Values means = load(m), squares = load(v), updates(means.size());
  for_each_layer(slice, scalars, [&](const Layer& layer) {
    for (std::size_t at = layer.begin; at < layer.end; ++at) {
      const double grad = layer.gradient(at, !rule.decoupled);
      means[at] = rule.beta1 * means[at] + (rule.grad_averaging ? 1 - rule.beta1 : 1.0) * grad;
      squares[at] = rule.beta2 * squares[at] + (1 - rule.beta2) * grad * grad;
      const double mean = means[at] / layer.bias_correction(rule.beta1, rule.bias_correction);
      const double square = squares[at] / layer.bias_correction(rule.beta2, rule.bias_correction);
      updates[at] = mean / (std::sqrt(square) + rule.epsilon) + (rule.decoupled ? layer.decay * layer.weights[at] : 0);
    }
    const double weight = layer.weight_norm();
    const double update = layer.norm_of([&](std::size_t at) { return updates[at]; });
    const double ratio = layer.segment.adapts != 0 && weight > 0 && update > 0 ? weight / update : 1.0;
    for (std::size_t at = layer.begin; at < layer.end; ++at) layer.weights[at] -= layer.lr * ratio * updates[at];
  });
  store(means, m);
  store(squares, v);
}

void novograd_step(const ArenaSlice& slice, const NovogradRule& rule, const StepScalars& scalars, const Tensor& m,
                   const Tensor& norms) {
  checks::novograd_step(slice, m, norms);
  Values means = load(m), second = load(norms);
  for_each_layer(slice, scalars, [&](const Layer& layer) {
    double norm = layer.gradient_norm();
    if (rule.max_norm) {
      norm = 0;
      for (std::size_t at = layer.begin; at < layer.end; ++at) norm = std::max(norm, std::abs(layer.grads[at]));
    }
    double& moment = second[static_cast<std::size_t>(layer.segment.parameter)];
    if (layer.steps == 0) moment = rule.init_zero ? 0.0 : norm;
    moment = rule.max_norm ? rule.beta2 * moment + (1 - rule.beta2) * norm
                           : std::sqrt(rule.beta2 * moment * moment + (1 - rule.beta2) * norm * norm);
    const double root = std::sqrt(layer.bias_correction(rule.beta2, rule.bias_correction));
    const double denominator = moment / root + rule.epsilon;
    for (std::size_t at = layer.begin; at < layer.end; ++at) {
      double& weight = layer.weights[at];
      const double grad =
          rule.reg_inside_moment ? layer.grads[at] / denominator + layer.decay * weight : layer.grads[at];
      means[at] = rule.beta1 * means[at] + (rule.grad_averaging ? 1 - rule.beta1 : 1.0) * grad;
      const double mean = means[at] / layer.bias_correction(rule.beta1, rule.bias_correction);
      weight -= layer.lr * (rule.reg_inside_moment ? mean : mean / denominator + layer.decay * weight);
    }
  });
  store(means, m);
  store(second, norms);
}

}  // namespace lockstep::kernels::reference
