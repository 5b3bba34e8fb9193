// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/tensor/tensor.h"

namespace lockstep::kernels {

/// The functions of Elementwise that callers of every folder use, of the backend for the device of `out`. They are
/// declared apart from their family so that a change of its header rebuilds its own users alone.

/// Sets every element of `out` to `value`.
void fill(const Tensor& out, double value);
/// out = in, converted to out's dtype (any pair of dtypes).
void cast(const Tensor& in, const Tensor& out);
/// out += in; dtypes may differ; computed in the wider one, rounded to out's.
void accumulate(const Tensor& in, const Tensor& out);
/// out = in * factor * (*device_factor where given). out may alias in.
void scale(const Tensor& in, double factor, const float* device_factor, const Tensor& out);
/// out = a + b
void add(const Tensor& a, const Tensor& b, const Tensor& out);
/// out = a * b
void multiply(const Tensor& a, const Tensor& b, const Tensor& out);

}  // namespace lockstep::kernels
