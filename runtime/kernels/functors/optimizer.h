// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "runtime/kernels/arena.h"

namespace lockstep::kernels {

/// Whether the segment's parameter has a gradient in this step; without, it is left alone.
[[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline bool has_gradient(const StepScalars& scalars,
                                                                     const ArenaSegment& segment) {
  return scalars.has_gradient == nullptr || scalars.has_gradient[segment.parameter] != 0.0f;
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

/// PyTorch's SGD on one element of one segment.
struct Sgd {
  UnscaledGradient unscale;
  float learning_rate;
  float weight_decay;
  float momentum;
  float gradient_share;  ///< of the gradient that enters the momentum: 1 on the first applied step, else 1 - dampening
  float memory;          ///< of the momentum that is kept: 0 on the first applied step
  bool nesterov;

  LOCKSTEP_HOST_DEVICE Sgd(const SgdOptions& options, const StepScalars& scalars, const ArenaSegment& segment)
      : unscale(scalars),
        learning_rate(*scalars.learning_rate * segment.lr_scale),
        weight_decay(segment.weight_decay),
        momentum(options.momentum),
        gradient_share(is_first(options, scalars, segment) ? 1.0f : 1.0f - options.dampening),
        memory(is_first(options, scalars, segment) ? 0.0f : options.momentum),
        nesterov(options.nesterov) {}

  /// Whether the parameter's momentum begins with this step.
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static bool is_first(const SgdOptions& options,
                                                                   const StepScalars& scalars,
                                                                   const ArenaSegment& segment) {
    return options.momentum != 0.0f && scalars.steps[segment.parameter] == 0;
  }

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE float operator()(float master, float grad) const {
    return master - learning_rate * (unscale(grad) + weight_decay * master);
  }

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE float operator()(float master, float grad, float& velocity) const {
    const float g = unscale(grad) + weight_decay * master;
    // A select, not a product with 0: before the first step the buffer may hold anything.
    const float kept = memory == 0.0f ? 0.0f : memory * velocity;
    velocity = kept + gradient_share * g;
    return master - learning_rate * (nesterov ? g + momentum * velocity : velocity);
  }
};

/// PyTorch's Adam and AdamW on one element of one segment.
struct Adam {
  UnscaledGradient unscale;
  float beta1;
  float beta2;
  float new_share1;  ///< 1 - beta1
  float new_share2;  ///< 1 - beta2
  float epsilon;
  float coupled_decay;    ///< weight decay that acts on the gradient
  float kept_weight;      ///< what decoupled weight decay leaves of the weight
  float step_size;        ///< learning rate / (1 - beta1^step)
  float root_correction;  ///< 1 / sqrt(1 - beta2^step)

  LOCKSTEP_HOST_DEVICE Adam(const AdamOptions& options, const StepScalars& scalars, const ArenaSegment& segment)
      : unscale(scalars),
        beta1(static_cast<float>(options.beta1)),
        beta2(static_cast<float>(options.beta2)),
        new_share1(static_cast<float>(1.0 - options.beta1)),
        new_share2(static_cast<float>(1.0 - options.beta2)),
        epsilon(static_cast<float>(options.epsilon)) {
    const double step = static_cast<double>(scalars.steps[segment.parameter] + 1);
    const double rate = static_cast<double>(*scalars.learning_rate) * segment.lr_scale;
    coupled_decay = options.decoupled ? 0.0f : segment.weight_decay;
    kept_weight = options.decoupled ? static_cast<float>(1.0 - rate * segment.weight_decay) : 1.0f;
    step_size = static_cast<float>(rate / (1.0 - std::pow(options.beta1, step)));
    root_correction = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(options.beta2, step)));
  }

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE float operator()(float master, float grad, float& m, float& v) const {
    const float g = unscale(grad) + coupled_decay * master;
    m = beta1 * m + new_share1 * g;
    v = beta2 * v + new_share2 * g * g;
    return kept_weight * master - step_size * m / (std::sqrt(v) * root_correction + epsilon);
  }
};

}  // namespace lockstep::kernels
