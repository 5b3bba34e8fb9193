// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/tensor/tensor.h"

namespace lockstep::kernels {

/// Arithmetic on the elements of tensors, and casts.
struct Elementwise {
  void (*fill)(const Tensor& out, double value);
  /// out = in, converted to out's dtype (any pair of dtypes).
  void (*cast)(const Tensor& in, const Tensor& out);
  /// out = in unless *rejected, a float on the device, is non-zero. Same shape and dtype.
  void (*copy_unless)(const float* rejected, const Tensor& in, const Tensor& out);
  /// out += in; dtypes may differ; computed in the wider one, rounded to out's.
  void (*accumulate)(const Tensor& in, const Tensor& out);
  /// out = a + b. Same dtype. b has a's shape, or is [channels] and broadcast over rows. out may alias a.
  void (*add)(const Tensor& a, const Tensor& b, const Tensor& out);
  /// out = a * b; shapes as in add.
  void (*multiply)(const Tensor& a, const Tensor& b, const Tensor& out);
  /// out = in * factor * (*device_factor where given). out may alias in.
  void (*scale)(const Tensor& in, double factor, const float* device_factor, const Tensor& out);
};

}  // namespace lockstep::kernels
