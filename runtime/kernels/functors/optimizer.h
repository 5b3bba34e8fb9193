// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <type_traits>

#include "runtime/kernels/arena.h"

namespace lockstep::kernels {

// The rules of the optimizers on one element of one segment. Each object is made once for a segment.

/// Whether the segment's parameter has a gradient in this step; without, it is left alone.
[[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline bool has_gradient(const StepScalars& scalars,
                                                                     const ArenaSegment& segment) {
  return scalars.has_gradient == nullptr || scalars.has_gradient[segment.parameter] != 0.0f;
}

[[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline double learning_rate_of(const StepScalars& scalars,
                                                                           const ArenaSegment& segment) {
  return static_cast<double>(*scalars.learning_rate) * segment.lr_scale;
}

/// The divisor that corrects an average which started at 0: 1 - beta^step, where the parameter's own steps count.
[[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline double bias_correction(double beta, const StepScalars& scalars,
                                                                          const ArenaSegment& segment) {
  return 1.0 - std::pow(beta, static_cast<double>(scalars.steps[segment.parameter] + 1));
}

/// The gradient as an optimizer uses it: unscaled, then clipped.
struct UnscaledGradient {
  float factor;  ///< 1 / loss scale, times the clipping by norm
  float limit;   ///< clipping by value; infinity for none

  LOCKSTEP_HOST_DEVICE explicit UnscaledGradient(const StepScalars& scalars)
      : factor((scalars.inverse_scale != nullptr ? *scalars.inverse_scale : 1.0f) *
               (scalars.clip != nullptr ? *scalars.clip : 1.0f)),
        limit(scalars.clip_value > 0.0f ? scalars.clip_value : INFINITY) {}

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE float operator()(float grad) const {
    const float g = grad * factor;
    return g < -limit ? -limit : g > limit ? limit : g;
  }
};

/// The rate and decay that LARC or LARS gives the segment's parameter; null where neither adapts it.
[[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline const LayerRate* layer_rate_of(const StepScalars& scalars,
                                                                                  const ArenaSegment& segment) {
  return scalars.layer_rates != nullptr && segment.adapts != 0 ? scalars.layer_rates + segment.parameter : nullptr;
}

/// Weight decay that acts on the weight itself: none where LARC has moved it into the gradient.
[[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float decoupled_decay(const StepScalars& scalars,
                                                                         const ArenaSegment& segment) {
  return layer_rate_of(scalars, segment) != nullptr ? 0.0f : segment.weight_decay;
}

/// The gradient with the weight decay that acts on it, at the layer's rate where there is one.
struct DecayedGradient {
  UnscaledGradient unscale;
  float decay;
  float rate = 1.0f;

  /// `coupled`: whether the rule's own weight decay acts on the gradient.
  LOCKSTEP_HOST_DEVICE DecayedGradient(bool coupled, const StepScalars& scalars, const ArenaSegment& segment)
      : unscale(scalars), decay(coupled ? segment.weight_decay : 0.0f) {
    const LayerRate* const layer = layer_rate_of(scalars, segment);
    if (layer == nullptr) return;
    decay = layer->decay;
    rate = layer->rate;
  }

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE float operator()(float master, float grad) const {
    return rate * (unscale(grad) + decay * master);
  }
};

struct Sgd {
  DecayedGradient gradient;
  float learning_rate;
  float momentum;
  float gradient_share;  ///< of the gradient that enters the momentum: 1 on the first applied step, else 1 - dampening
  float memory;          ///< of the momentum that is kept: 0 on the first applied step
  bool nesterov;

  LOCKSTEP_HOST_DEVICE Sgd(const SgdRule& rule, const StepScalars& scalars, const ArenaSegment& segment)
      : gradient(true, scalars, segment),
        learning_rate(*scalars.learning_rate * segment.lr_scale),
        momentum(rule.momentum),
        gradient_share(is_first(rule, scalars, segment) ? 1.0f : 1.0f - rule.dampening),
        memory(is_first(rule, scalars, segment) ? 0.0f : rule.momentum),
        nesterov(rule.nesterov) {
    if (!rule.rate_in_momentum) return;
    gradient.rate *= learning_rate;
    learning_rate = 1.0f;
  }

  /// Whether the parameter's momentum begins with this step.
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static bool is_first(const SgdRule& rule, const StepScalars& scalars,
                                                                   const ArenaSegment& segment) {
    return rule.momentum != 0.0f && scalars.steps[segment.parameter] == 0;
  }

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE float operator()(float master, float grad) const {
    return master - learning_rate * gradient(master, grad);
  }

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE float operator()(float master, float grad, float& velocity) const {
    const float g = gradient(master, grad);
    // A select, not a product with 0: before the first step the buffer may hold anything.
    const float kept = memory == 0.0f ? 0.0f : memory * velocity;
    velocity = kept + gradient_share * g;
    return master - learning_rate * (nesterov ? g + momentum * velocity : velocity);
  }
};

struct Adam {
  DecayedGradient gradient;
  float beta1;
  float beta2;
  float new_share1;  ///< 1 - beta1
  float new_share2;  ///< 1 - beta2
  float epsilon;
  float kept_weight;      ///< what decoupled weight decay leaves of the weight
  float step_size;        ///< learning rate / (1 - beta1^step)
  float root_correction;  ///< 1 / sqrt(1 - beta2^step)

  LOCKSTEP_HOST_DEVICE Adam(const AdamRule& rule, const StepScalars& scalars, const ArenaSegment& segment)
      : gradient(!rule.decoupled, scalars, segment),
        beta1(static_cast<float>(rule.beta1)),
        beta2(static_cast<float>(rule.beta2)),
        new_share1(static_cast<float>(1.0 - rule.beta1)),
        new_share2(static_cast<float>(1.0 - rule.beta2)),
        epsilon(static_cast<float>(rule.epsilon)) {
    const double rate = learning_rate_of(scalars, segment);
    kept_weight = rule.decoupled ? static_cast<float>(1.0 - rate * decoupled_decay(scalars, segment)) : 1.0f;
    step_size = static_cast<float>(rate / bias_correction(rule.beta1, scalars, segment));
    root_correction = static_cast<float>(1.0 / std::sqrt(bias_correction(rule.beta2, scalars, segment)));
  }

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE float operator()(float master, float grad, float& m, float& v) const {
    update_moments(gradient(master, grad), m, v);
    return stepped(master, m, v);
  }

  /// The step with amsgrad, which divides by the root of max_v.
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE float operator()(float master, float grad, float& m, float& v,
                                                               float& max_v) const {
    update_moments(gradient(master, grad), m, v);
    max_v = max_v < v ? v : max_v;
    return stepped(master, m, max_v);
  }

 private:
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE void update_moments(float g, float& m, float& v) const {
    m = beta1 * m + new_share1 * g;
    v = beta2 * v + new_share2 * g * g;
  }

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE float stepped(float master, float m, float v) const {
    return kept_weight * master - step_size * m / (std::sqrt(v) * root_correction + epsilon);
  }
};

struct Adagrad {
  DecayedGradient gradient;
  float epsilon;
  float kept_weight;  ///< what decoupled weight decay leaves of the weight
  float step_size;    ///< learning rate / (1 + earlier steps * lr_decay)

  LOCKSTEP_HOST_DEVICE Adagrad(const AdagradRule& rule, const StepScalars& scalars, const ArenaSegment& segment)
      : gradient(!rule.decoupled, scalars, segment), epsilon(static_cast<float>(rule.epsilon)) {
    const double earlier = static_cast<double>(scalars.steps[segment.parameter]);
    const double rate = learning_rate_of(scalars, segment) / (1.0 + earlier * rule.lr_decay);
    kept_weight = rule.decoupled ? static_cast<float>(1.0 - rate * decoupled_decay(scalars, segment)) : 1.0f;
    step_size = static_cast<float>(rate);
  }

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE float operator()(float master, float grad, float& sum) const {
    const float g = gradient(master, grad);
    sum = sum + g * g;
    return kept_weight * master - step_size * g / (std::sqrt(sum) + epsilon);
  }
};

struct Rmsprop {
  DecayedGradient gradient;
  float alpha;
  float new_share;  ///< 1 - alpha
  float epsilon;
  float momentum;
  float learning_rate;
  bool centered;

  LOCKSTEP_HOST_DEVICE Rmsprop(const RmspropRule& rule, const StepScalars& scalars, const ArenaSegment& segment)
      : gradient(true, scalars, segment),
        alpha(static_cast<float>(rule.alpha)),
        new_share(static_cast<float>(1.0 - rule.alpha)),
        epsilon(static_cast<float>(rule.epsilon)),
        momentum(rule.momentum),
        learning_rate(static_cast<float>(learning_rate_of(scalars, segment))),
        centered(rule.centered) {}

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE float operator()(float master, float grad, float& square) const {
    const float g = gradient(master, grad);
    return master - learning_rate * (g / (root(square, g) + epsilon));
  }

  /// `other` is the mean where the rule is centered, else the momentum.
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE float operator()(float master, float grad, float& square,
                                                               float& other) const {
    const float g = gradient(master, grad);
    const float direction = g / ((centered ? deviation(square, other, g) : root(square, g)) + epsilon);
    if (centered) return master - learning_rate * direction;
    other = momentum * other + direction;
    return master - learning_rate * other;
  }

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE float operator()(float master, float grad, float& square, float& mean,
                                                               float& velocity) const {
    const float g = gradient(master, grad);
    velocity = momentum * velocity + g / (deviation(square, mean, g) + epsilon);
    return master - learning_rate * velocity;
  }

 private:
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE float root(float& square, float g) const {
    square = alpha * square + new_share * g * g;
    return std::sqrt(square);
  }
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE float deviation(float& square, float& mean, float g) const {
    square = alpha * square + new_share * g * g;
    mean = alpha * mean + new_share * g;
    // A gradient that never changes has a variance of 0; rounding may make it negative.
    const float variance = square - mean * mean;
    return std::sqrt(variance < 0.0f ? 0.0f : variance);
  }
};

struct Lion {
  DecayedGradient gradient;
  float beta1;
  float beta2;
  float new_share1;   ///< 1 - beta1
  float new_share2;   ///< 1 - beta2
  float kept_weight;  ///< what weight decay leaves of the weight
  float learning_rate;

  LOCKSTEP_HOST_DEVICE Lion(const LionRule& rule, const StepScalars& scalars, const ArenaSegment& segment)
      : gradient(false, scalars, segment),
        beta1(static_cast<float>(rule.beta1)),
        beta2(static_cast<float>(rule.beta2)),
        new_share1(static_cast<float>(1.0 - rule.beta1)),
        new_share2(static_cast<float>(1.0 - rule.beta2)) {
    const double rate = learning_rate_of(scalars, segment);
    kept_weight = static_cast<float>(1.0 - rate * decoupled_decay(scalars, segment));
    learning_rate = static_cast<float>(rate);
  }

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE float operator()(float master, float grad, float& m) const {
    const float g = gradient(master, grad);
    const float direction = beta1 * m + new_share1 * g;
    m = beta2 * m + new_share2 * g;
    const float sign = direction > 0.0f ? 1.0f : direction < 0.0f ? -1.0f : 0.0f;
    return kept_weight * master - learning_rate * sign;
  }
};

/// The functor of each rule that looks at an element alone. It is called with the weight, the gradient and as many
/// states as the rule has, which it changes, and returns the new weight.
template <class Rule>
struct ElementOf;
template <>
struct ElementOf<SgdRule> {
  using Type = Sgd;
};
template <>
struct ElementOf<AdamRule> {
  using Type = Adam;
};
template <>
struct ElementOf<AdagradRule> {
  using Type = Adagrad;
};
template <>
struct ElementOf<RmspropRule> {
  using Type = Rmsprop;
};
template <>
struct ElementOf<LionRule> {
  using Type = Lion;
};

/// Whether the functor takes so many states.
template <class Rule, int states>
constexpr bool takes_states() {
  using Element = typename ElementOf<Rule>::Type;
  if constexpr (states == 0) return std::is_invocable_v<Element, float, float>;
  if constexpr (states == 1) return std::is_invocable_v<Element, float, float, float&>;
  if constexpr (states == 2) return std::is_invocable_v<Element, float, float, float&, float&>;
  if constexpr (states == 3) return std::is_invocable_v<Element, float, float, float&, float&, float&>;
  return false;
}

/// Whether it takes as many as the rule has.
template <class Rule>
bool takes_its_states(const Rule& rule) {
  const bool takes[] = {takes_states<Rule, 0>(), takes_states<Rule, 1>(), takes_states<Rule, 2>(),
                        takes_states<Rule, 3>()};
  return takes[rule.states()];
}

}  // namespace lockstep::kernels
