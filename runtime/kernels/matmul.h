// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/activation.h"
#include "runtime/tensor/device.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::kernels {

/// Operations on a matrix product [m, n] before it is stored, without another pass over memory. Forward: the bias and
/// the activation of a linear layer. Backward: the derivative of the layer before and the gradient of the bias.
struct Epilogue {
  Epilogue() = default;
  /// Most products have a bias at most, so a tensor will do; an undefined one is none.
  Epilogue(const Tensor& each_row) : bias(each_row) {}  // NOLINT(google-explicit-constructor)

  Tensor bias;  ///< [n], the operands' dtype; added to every row; may be undefined
  /// out = activation(z) with z = product + bias.
  Activation activation = Activation::kNone;
  /// Receives z, in out's shape and dtype, for an activation whose derivative does not follow from its output. May be
  /// undefined; allowed only with an activation.
  Tensor preactivation;

  /// out = product * derivative'(derivative_at): the gradient of a layer's output, times its activation's derivative.
  Activation derivative = Activation::kNone;
  /// out's shape and dtype: that layer's z, or its output where the derivative follows from that.
  Tensor derivative_at;

  /// [m], of any floating dtype: receives the sums of op(a)'s rows. With dy transposed as a, where the product is the
  /// gradient of a weight, that is the gradient of the bias. May be undefined; only for a transposed a of rank 2.
  Tensor bias_gradient;
  bool accumulate_bias_gradient = false;  ///< add to it instead of overwriting it
};

/// Products of matrices and of batches of matrices.
struct MatrixProducts {
  /// This family's functions of the backend for tensors on `device`.
  static const MatrixProducts& on(Device device);

  /// out = op(a) op(b), through `epilogue` (+ out when `accumulate`, which goes with neither an activation nor a
  /// derivative), op transposing the last two dimensions where asked for. Rank 2, or rank 3 with equal batch extents. a
  /// and b share a dtype; out may have another one: float32 or the same.
  ///
  /// Where a device has no fused kernel for an activation or a derivative, what it applies to may be rounded to out's
  /// dtype before: 16-bit results are then rounded twice, as those of separate operations are.
  void (*matmul)(const Tensor& a, bool transpose_a, const Tensor& b, bool transpose_b, const Epilogue& epilogue,
                 bool accumulate, const Tensor& out);
};

}  // namespace lockstep::kernels
