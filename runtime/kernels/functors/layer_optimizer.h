// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/functors/optimizer.h"

namespace lockstep::kernels {

// The rules in which a parameter's norms decide how far it goes.

/// The sums of squares of a segment's weights, and of the gradient or update that they are compared with.
struct LayerSquares {
  double weight = 0;
  double other = 0;

  LOCKSTEP_HOST_DEVICE bool both_positive() const { return weight > 0 && other > 0; }
};

/// LARC's and LARS's rate; `squares.other` are those of the unscaled and clipped gradient.
LOCKSTEP_HOST_DEVICE inline LayerRate layer_rate(const LayerRateRule& rule, const StepScalars& scalars,
                                                 const ArenaSegment& segment, const LayerSquares& squares) {
  if (!squares.both_positive()) return {1.0f, rule.decay_without_norm ? segment.weight_decay : 0.0f};
  const double weight = std::sqrt(squares.weight);
  const double decay = segment.weight_decay;
  double rate = rule.trust_coefficient * weight / (std::sqrt(squares.other) + decay * weight + rule.epsilon);
  if (rule.clip) {
    // A learning rate of 0 gives infinity, and so 1.
    rate /= learning_rate_of(scalars, segment);
    rate = rate < 1.0 ? rate : 1.0;
  }
  return {static_cast<float>(rate), segment.weight_decay};
}

/// LAMB's trust ratio; `squares.other` are those of the update.
LOCKSTEP_HOST_DEVICE inline double trust_ratio(const ArenaSegment& segment, const LayerSquares& squares) {
  return segment.adapts != 0 && squares.both_positive() ? std::sqrt(squares.weight) / std::sqrt(squares.other) : 1.0;
}

struct Lamb {
  UnscaledGradient unscale;
  float beta1;
  float beta2;
  float new_share1;  ///< of a gradient that enters the first moment
  float new_share2;  ///< 1 - beta2
  float epsilon;
  float coupled_decay;     ///< weight decay that acts on the gradient
  float decoupled_decay;   ///< weight decay that is part of the update
  float mean_correction;   ///< 1 / (1 - beta1^step)
  float root_correction;   ///< 1 / sqrt(1 - beta2^step)
  float step_size = 0.0f;  ///< learning rate * trust ratio

  /// For the pass over the moments.
  LOCKSTEP_HOST_DEVICE Lamb(const LambRule& rule, const StepScalars& scalars, const ArenaSegment& segment)
      : unscale(scalars),
        beta1(static_cast<float>(rule.beta1)),
        beta2(static_cast<float>(rule.beta2)),
        new_share1(rule.grad_averaging ? static_cast<float>(1.0 - rule.beta1) : 1.0f),
        new_share2(static_cast<float>(1.0 - rule.beta2)),
        epsilon(static_cast<float>(rule.epsilon)),
        coupled_decay(rule.decoupled ? 0.0f : segment.weight_decay),
        decoupled_decay(rule.decoupled ? segment.weight_decay : 0.0f),
        mean_correction(1.0f),
        root_correction(1.0f) {
    if (!rule.bias_correction) return;
    mean_correction = static_cast<float>(1.0 / bias_correction(rule.beta1, scalars, segment));
    root_correction = static_cast<float>(1.0 / std::sqrt(bias_correction(rule.beta2, scalars, segment)));
  }

  /// For the pass over the weights.
  LOCKSTEP_HOST_DEVICE Lamb(const LambRule& rule, const StepScalars& scalars, const ArenaSegment& segment,
                            double trust_ratio)
      : Lamb(rule, scalars, segment) {
    step_size = static_cast<float>(learning_rate_of(scalars, segment) * trust_ratio);
  }

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE void update_moments(float master, float grad, float& m, float& v) const {
    const float g = unscale(grad) + coupled_decay * master;
    m = beta1 * m + new_share1 * g;
    v = beta2 * v + new_share2 * g * g;
  }

  /// The update of the weight before the step size scales it, from the new moments.
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE float update(float master, float m, float v) const {
    return mean_correction * m / (std::sqrt(v) * root_correction + epsilon) + decoupled_decay * master;
  }

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE float operator()(float master, float m, float v) const {
    return master - step_size * update(master, m, v);
  }
};

/// NovoGrad's running norm after a step. `before` is the norm before the step, which a parameter's first step does not
/// read. `square` is the square of the norm of the unscaled and clipped gradient.
LOCKSTEP_HOST_DEVICE inline float novograd_norm(const NovogradRule& rule, const StepScalars& scalars,
                                                const ArenaSegment& segment, float before, double square) {
  double kept = before;
  if (scalars.steps[segment.parameter] == 0) kept = rule.init_zero ? 0.0 : std::sqrt(square);
  if (rule.max_norm) return static_cast<float>(rule.beta2 * kept + (1.0 - rule.beta2) * std::sqrt(square));
  return static_cast<float>(std::sqrt(rule.beta2 * kept * kept + (1.0 - rule.beta2) * square));
}

struct Novograd {
  UnscaledGradient unscale;
  float beta1;
  float new_share;      ///< of a gradient that enters the first moment
  float normalised;     ///< the factor of a gradient before it enters the moment
  float coupled_decay;  ///< weight decay that enters the moment
  float kept_weight;    ///< what decoupled weight decay leaves of the weight
  float step_size;      ///< learning rate, corrections, and what the gradient was not divided by

  /// `norm`: novograd_norm() of this step.
  LOCKSTEP_HOST_DEVICE Novograd(const NovogradRule& rule, const StepScalars& scalars, const ArenaSegment& segment,
                                float norm)
      : unscale(scalars),
        beta1(static_cast<float>(rule.beta1)),
        new_share(rule.grad_averaging ? static_cast<float>(1.0 - rule.beta1) : 1.0f),
        coupled_decay(rule.reg_inside_moment ? segment.weight_decay : 0.0f) {
    const double rate = learning_rate_of(scalars, segment);
    double mean_correction = 1.0;
    double root_correction = 1.0;
    if (rule.bias_correction) {
      mean_correction = bias_correction(rule.beta1, scalars, segment);
      root_correction = std::sqrt(bias_correction(rule.beta2, scalars, segment));
    }
    const double denominator = static_cast<double>(norm) / root_correction + rule.epsilon;
    normalised = rule.reg_inside_moment ? static_cast<float>(1.0 / denominator) : 1.0f;
    kept_weight = rule.reg_inside_moment ? 1.0f : static_cast<float>(1.0 - rate * segment.weight_decay);
    step_size = static_cast<float>(rate / mean_correction / (rule.reg_inside_moment ? 1.0 : denominator));
  }

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE float operator()(float master, float grad, float& m) const {
    m = beta1 * m + new_share * (normalised * unscale(grad) + coupled_decay * master);
    return kept_weight * master - step_size * m;
  }
};

}  // namespace lockstep::kernels
