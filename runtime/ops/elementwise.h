// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "amp/autocast/policy.h"
#include "runtime/kernels/activation.h"
#include "runtime/tensor/error.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::ops {

/// a + b. Same shape, or b [channels] added to every row of a. Dtypes are promoted.
Tensor add(const Tensor& a, const Tensor& b);
/// a * b elementwise; shapes as in add.
Tensor mul(const Tensor& a, const Tensor& b);
/// x * factor.
Tensor scale(const Tensor& x, double factor);
/// x * *device_factor, a float32 on x's device; the pointer must outlive the backward pass. The factor is no part of
/// the graph.
Tensor scale_by(const Tensor& x, const float* device_factor);
/// activation(x) of every element; x itself for kNone. What the backward pass needs of it is kept: the output where
/// the derivative follows from that, else x.
Tensor activate(kernels::Activation activation, const Tensor& x);

inline Tensor relu(const Tensor& x) { return activate(kernels::Activation::kRelu, x); }
/// x * (1 + erf(x / sqrt 2)) / 2
inline Tensor gelu(const Tensor& x) { return activate(kernels::Activation::kGelu, x); }
/// x * (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2: gelu's approximation, PyTorch's approximate="tanh".
inline Tensor gelu_tanh(const Tensor& x) { return activate(kernels::Activation::kGeluTanh, x); }
inline Tensor tanh(const Tensor& x) { return activate(kernels::Activation::kTanh, x); }
/// 1 / (1 + e^-x)
inline Tensor sigmoid(const Tensor& x) { return activate(kernels::Activation::kSigmoid, x); }

/// The operation that an activation is: its name in the graph and its row in autocast's policy table.
inline amp::Op op_of(kernels::Activation activation) {
  switch (activation) {  // no default: the compiler asks for a new one
    case kernels::Activation::kNone:
      break;
    case kernels::Activation::kRelu:
      return amp::Op::kRelu;
    case kernels::Activation::kGelu:
      return amp::Op::kGelu;
    case kernels::Activation::kGeluTanh:
      return amp::Op::kGeluTanh;
    case kernels::Activation::kTanh:
      return amp::Op::kTanh;
    case kernels::Activation::kSigmoid:
      return amp::Op::kSigmoid;
  }
  throw UsageError("an activation that is no operation");
}

}  // namespace lockstep::ops
