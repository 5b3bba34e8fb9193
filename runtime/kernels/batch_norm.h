// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/tensor/device.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::kernels {

/// Where relu lets a gradient through: where y, the output of batch_norm_apply, is above 0.
struct BatchNormMask {
  Tensor y = {};  ///< undefined: there is no relu, and all of it passes
  // The parameters of a y to which no residual was added, all of them or none. A device may compute y again from them
  // and x instead of reading it.
  Tensor inv_std = {};
  Tensor gamma = {};
  Tensor beta = {};
};

/// The gradient that arrives at batch_norm_apply's y, each part of x's shape and dtype.
struct BatchNormGradient {
  Tensor dy;
  /// Undefined, or the gradient is dy + addend, rounded to their dtype. Then `masked` is defined.
  Tensor addend = {};
  /// Where defined, receives dy': the gradient where the mask lets it through, else 0. It may be dy or addend.
  Tensor masked = {};
};

/// Where the gradients of gamma and beta go, each [C] of any floating dtype or undefined; one that accumulates is added
/// to what is there. They are computed in the statistics' dtype, then rounded.
struct BatchNormParameterGradients {
  Tensor inv_std = {};
  Tensor dgamma = {};  ///< sum_dy_xmu inv_std
  bool accumulate_dgamma = false;
  Tensor dbeta = {};  ///< sum_dy
  bool accumulate_dbeta = false;
};

/// Batch normalisation over channels. Statistics and parameters are float32 [C] (float64 for float64 x).
struct BatchNormalization {
  /// This family's functions of the backend for tensors on `device`.
  static const BatchNormalization& on(Device device);

  /// mean [C] and m2 [C] = sum of (x - mean)^2 over this tensor's rows (0 and 0 without rows).
  void (*batch_norm_statistics)(const Tensor& x, const Tensor& mean, const Tensor& m2);
  /// Combines the statistics of P shares in their order. packed [P, 2 C + 1] holds for each share mean [C], m2 [C] and
  /// its number of rows. Writes mean [C], inv_std [C] = 1 / sqrt(m2 / count + epsilon), count (scalar: all rows), and
  /// where `running` is defined next_running [2, C] = (1 - momentum) running + momentum (mean; m2 / (count - 1)), which
  /// must not alias running. Without any row the running statistics stay.
  void (*batch_norm_finalize)(const Tensor& packed, double epsilon, double momentum, const Tensor& running,
                              const Tensor& mean, const Tensor& inv_std, const Tensor& count,
                              const Tensor& next_running);
  /// batch_norm_finalize() of batch_norm_statistics() of x alone, and of its number of rows.
  void (*batch_norm_measure)(const Tensor& x, double epsilon, double momentum, const Tensor& running,
                             const Tensor& mean, const Tensor& inv_std, const Tensor& count,
                             const Tensor& next_running);
  /// y = act((x - mean) * inv_std * gamma + beta + residual), act being relu or the identity. residual [x's shape] may
  /// be undefined. y may alias residual.
  void (*batch_norm_apply)(const Tensor& x, const Tensor& mean, const Tensor& inv_std, const Tensor& gamma,
                           const Tensor& beta, const Tensor& residual, bool relu, const Tensor& y);
  /// sum_dy [C] = sum of dy', sum_dy_xmu [C] = sum of dy' (x - mean), where dy' is the gradient where the mask lets it
  /// through, else 0; and of these sums the parameters' gradients.
  void (*batch_norm_backward_reduce)(const Tensor& x, const Tensor& mean, const BatchNormGradient& gradient,
                                     const BatchNormMask& mask, const Tensor& sum_dy, const Tensor& sum_dy_xmu,
                                     const BatchNormParameterGradients& gradients);
  /// dx = gamma inv_std (dy' - sum_dy / count - (x - mean) inv_std^2 sum_dy_xmu / count), with the sums and the count
  /// (scalar) of all ranks; dy' is dy where the mask lets it through, else 0. With count undefined the statistics are
  /// constants (evaluation): dx = gamma inv_std dy'.
  void (*batch_norm_backward_apply)(const Tensor& x, const Tensor& mean, const Tensor& inv_std, const Tensor& gamma,
                                    const Tensor& dy, const BatchNormMask& mask, const Tensor& sum_dy,
                                    const Tensor& sum_dy_xmu, const Tensor& count, const Tensor& dx);
};

}  // namespace lockstep::kernels
