// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/tensor/device.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::kernels {

/// Normalisation within a sample. Statistics and parameters are float32 (float64 for float64 x), and so are the
/// parameters' gradients. weight and bias [channels] may each be undefined: ones, and zeros. y, with dy, has x's dtype
/// or is float32; that of layer_norm of float32 x may have 16 bits.
struct Normalization {
  /// This family's functions of the backend for tensors on `device`.
  static const Normalization& on(Device device);

  /// Over each row of x: y = (x - mean) inv_std weight + bias. mean [rows], and inv_std [rows] = 1 / sqrt(variance +
  /// epsilon), are kept for the backward pass. Where mean is undefined nothing is subtracted, and inv_std is
  /// 1 / sqrt(mean of x^2 + epsilon): the normalisation by the root mean square of Zhang, Sennrich, "Root Mean Square
  /// Layer Normalization", 2019.
  void (*layer_norm)(const Tensor& x, const Tensor& weight, const Tensor& bias, double epsilon, const Tensor& y,
                     const Tensor& mean, const Tensor& inv_std);
  /// With n = (x - mean) inv_std and g = dy weight: dx = inv_std (g - average of g - n * average of g n), the averages
  /// taken over the row, and the first left out where mean is undefined. dweight [channels] = sum over rows of dy n,
  /// dbias [channels] = sum over rows of dy. Each of the three may be undefined.
  void (*layer_norm_backward)(const Tensor& x, const Tensor& weight, const Tensor& mean, const Tensor& inv_std,
                              const Tensor& dy, const Tensor& dx, const Tensor& dweight, const Tensor& dbias);
  /// x [N, spatial..., channels]: as layer_norm, with the statistics mean and inv_std [N, groups] of each sample over
  /// its space and the channels / groups neighbouring channels of a group. groups = channels: instance normalisation.
  void (*group_norm)(const Tensor& x, const Tensor& weight, const Tensor& bias, double epsilon, const Tensor& y,
                     const Tensor& mean, const Tensor& inv_std);
  /// As layer_norm_backward, the averages taken over a sample's space and a group's channels, the sums over samples and
  /// space.
  void (*group_norm_backward)(const Tensor& x, const Tensor& weight, const Tensor& mean, const Tensor& inv_std,
                              const Tensor& dy, const Tensor& dx, const Tensor& dweight, const Tensor& dbias);
};

}  // namespace lockstep::kernels
