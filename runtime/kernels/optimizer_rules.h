// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <variant>

namespace lockstep::kernels {

// The numbers of an optimizer's rule that hold for all parameters. Those from which 1 - beta or a power is computed are
// doubles: 1 - 0.999 is 5e-5 off where 0.999 is a float.

// Rules that look at each element alone. states(): the numbers that such a rule keeps of an element.

/// PyTorch's SGD, and the SGD of LARS.
struct SgdRule {
  float momentum = 0.0f;
  float dampening = 0.0f;
  bool nesterov = false;
  bool rate_in_momentum = false;  ///< LARS: the momentum is of steps, not of gradients; the learning rate is in it

  /// The momentum, where there is one. On a parameter's first applied step it becomes the gradient.
  int states() const { return momentum != 0.0f ? 1 : 0; }
};

/// PyTorch's Adam and AdamW.
struct AdamRule {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  bool decoupled = false;  ///< AdamW: weight decay acts on the weight, not on the gradient
  bool amsgrad = false;    ///< divides by the root of the largest second moment up to now

  /// The first moment, the second, and with amsgrad the largest second one.
  int states() const { return amsgrad ? 3 : 2; }
};

/// PyTorch's Adagrad.
struct AdagradRule {
  double lr_decay = 0.0;
  double epsilon = 1e-10;
  bool decoupled = false;  ///< weight decay acts on the weight, not on the gradient

  /// The sum of squares.
  int states() const { return 1; }
};

/// PyTorch's RMSprop.
struct RmspropRule {
  double alpha = 0.99;  ///< the share of the mean of squares that a step keeps
  double epsilon = 1e-8;
  float momentum = 0.0f;
  bool centered = false;  ///< divides by the standard deviation, not by the root of the mean of squares

  /// The mean of squares; centered, the mean; with momentum, the momentum.
  int states() const { return 1 + (centered ? 1 : 0) + (momentum != 0.0f ? 1 : 0); }
};

/// Lion (Chen et al.: arXiv 2302.06675); its weight decay acts on the weight.
struct LionRule {
  double beta1 = 0.9;   ///< the momentum's share in the direction
  double beta2 = 0.99;  ///< the share of the momentum that a step keeps

  /// The momentum.
  int states() const { return 1; }
};

using ElementRule = std::variant<SgdRule, AdamRule, AdagradRule, RmspropRule, LionRule>;
inline int states_of(const ElementRule& rule) {
  return std::visit([](const auto& of) { return of.states(); }, rule);
}
/// The largest states() of the rules above.
inline constexpr int kMostStates = 3;

// Rules that look at the norms of parameters.

/// LAMB (You et al.: arXiv 1904.00962) as Apex's FusedLAMB computes it.
struct LambRule {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-6;
  bool decoupled = true;  ///< weight decay is added to the update, not to the gradient
  bool bias_correction = true;
  bool grad_averaging = true;  ///< 1 - beta1 of a gradient enters the first moment; false: all of it
};

/// NovoGrad (Ginsburg et al.: arXiv 1905.11286) as Apex's FusedNovoGrad computes it.
struct NovogradRule {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  bool bias_correction = true;
  bool grad_averaging = true;      ///< 1 - beta1 of a gradient enters the first moment; false: all of it
  bool reg_inside_moment = false;  ///< the first moment is of normalised gradients with their weight decay
  bool max_norm = false;           ///< of a gradient: its largest magnitude, not its Euclidean norm
  bool init_zero = false;          ///< the second moment starts at 0; false: at the first gradient's
};

/// How LARC and LARS (You et al.: arXiv 1708.03888) find a parameter's rate from its norm and that of its gradient:
/// trust_coefficient * |weight| / (|gradient| + weight_decay * |weight| + epsilon).
struct LayerRateRule {
  double trust_coefficient = 0.001;
  double epsilon = 0.0;
  bool clip = false;  ///< LARC: the rate is divided by the learning rate, and is at most 1
  /// Where a norm is 0 the rate is 1. This says whether the weight then decays: under LARS it does, under LARC not.
  bool decay_without_norm = false;
};

/// The result of a LayerRateRule for a parameter, whose gradient becomes rate * (gradient + decay * weight).
struct LayerRate {
  float rate = 1.0f;
  float decay = 0.0f;
};

/// A running mean of weights: mean = d mean + (1 - d) weights, where d is `decay`, and with a warm-up at most
/// (1 + n) / (warmup + n) at the n-th applied step, counted from 1.
struct MeanRule {
  double decay = 0.999;
  double warmup = 0;  ///< 0: none
};

}  // namespace lockstep::kernels
