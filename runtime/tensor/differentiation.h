// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/tensor/tensor.h"

namespace lockstep {

/// The functions that the members of Tensor for automatic differentiation call. In a program that links
/// runtime/autograd they are its own from the start. In any other no tensor requires a gradient, and asking for one
/// throws UsageError.
struct Differentiation {
  bool (*requires_grad)(const Tensor& tensor);
  void (*set_requires_grad)(const Tensor& tensor, bool requires_grad);
  Tensor (*grad)(const Tensor& tensor);
  void (*backward)(const Tensor& tensor);

  /// runtime/autograd/cast.h; without runtime/autograd nobody casts.
  Tensor (*cast)(const Tensor& tensor, DType dtype);

  /// Each makes `result`, whose elements are there already, the result of an operation on `from`.
  void (*record_to)(const Tensor& result, const Tensor& from);
  void (*record_reshape)(const Tensor& result, const Tensor& from);
  void (*record_rows)(const Tensor& result, const Tensor& from, std::int64_t begin);
  void (*record_copy)(const Tensor& result, const Tensor& from);
  /// Throws UsageError where backward would go wrong after a write by `operation`.
  void (*require_writable)(const Tensor& tensor, std::string_view operation);
  /// Throws UsageError where backward would go wrong after a recorded copy of `from` to `result`.
  void (*require_copyable)(const Tensor& result, const Tensor& from);
};

/// Called once, before main.
void set_differentiation(const Differentiation& functions);
const Differentiation& differentiation();

}  // namespace lockstep
