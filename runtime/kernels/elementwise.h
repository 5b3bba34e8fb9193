// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/binary.h"
#include "runtime/tensor/device.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::kernels {

/// Arithmetic on the elements of tensors, and casts.
///
/// Operands of binary and ternary functions are broadcast by NumPy's rules to the shape of `out`: from the last
/// dimension on, extents are equal, or one of them is 1 or missing. They have one floating dtype, and so has `out`; it
/// is bool where the function is a comparison. Functions are computed in float32 (float64 for float64) and rounded
/// once. `out` may alias an operand of its shape and dtype.
struct Elementwise {
  /// This family's functions of the backend for tensors on `device`.
  static const Elementwise& on(Device device);

  void (*fill)(const Tensor& out, double value);
  /// out = in, converted to out's dtype (any pair of dtypes).
  void (*cast)(const Tensor& in, const Tensor& out);
  /// out = in unless *rejected, a float on the device, is non-zero. Same shape and dtype.
  void (*copy_unless)(const float* rejected, const Tensor& in, const Tensor& out);
  /// out += in; dtypes may differ; computed in the wider one, rounded to out's.
  void (*accumulate)(const Tensor& in, const Tensor& out);
  /// out = in * factor * (*device_factor where given). out may alias in.
  void (*scale)(const Tensor& in, double factor, const float* device_factor, const Tensor& out);
  /// out = function(a, b). Of kAdd, b may be 16-bit beside a float32 a of its shape.
  void (*binary)(Binary function, const Tensor& a, const Tensor& b, const Tensor& out);
  /// out = function(x, number), or function(number, x) where `number_first`. out has x's shape.
  void (*binary_with_number)(Binary function, const Tensor& x, double number, bool number_first, const Tensor& out);
  /// out = function(a, b, c). The a of kWhere is bool.
  void (*ternary)(const TernaryFunction& function, const Tensor& a, const Tensor& b, const Tensor& c,
                  const Tensor& out);
  /// out = in, broadcast to out's shape. Of one floating dtype.
  void (*expand)(const Tensor& in, const Tensor& out);

  /// out = a + b
  void add(const Tensor& a, const Tensor& b, const Tensor& out) const { binary(Binary::kAdd, a, b, out); }
  /// out = a * b
  void multiply(const Tensor& a, const Tensor& b, const Tensor& out) const { binary(Binary::kMul, a, b, out); }
};

}  // namespace lockstep::kernels
