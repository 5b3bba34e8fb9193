// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/kernels/activation.h"
#include "runtime/kernels/distribution.h"
#include "runtime/kernels/random_keys.h"
#include "runtime/kernels/unary.h"
#include "runtime/tensor/device.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::kernels {

/// Functions of one number, applied to every element, dropout, and random numbers.
struct Pointwise {
  /// This family's functions of the backend for tensors on `device`.
  static const Pointwise& on(Device device);

  /// y = function(x), of x's shape and dtype. y may alias x.
  void (*unary)(const UnaryFunction& function, const Tensor& x, const Tensor& y);
  /// dx = dy * function'(at). `at` is the function's output where derivative_follows_from_output(function.kind), else
  /// its input. All of one shape and dtype. dx may alias dy.
  void (*unary_backward)(const UnaryFunction& function, const Tensor& at, const Tensor& dy, const Tensor& dx);
  /// y = x * mask / (1 - p), where element i of x is number first_element + i of the global tensor and its mask is
  /// uniform(key, number) >= p, runtime/base/counter_rng.h. The backward pass is the same call on dy. y may alias x.
  void (*dropout)(const Tensor& x, double p, const DropoutKey& key, std::int64_t first_element, const Tensor& y);
  /// Element i of `out`, of a floating dtype, is number first_element + i of the key's stream.
  void (*random)(Distribution distribution, double first, double second, const RandomKey& key,
                 std::int64_t first_element, const Tensor& out);

  /// y = activation(x), as unary() says.
  void activate(Activation activation, const Tensor& x, const Tensor& y) const { unary(unary_of(activation), x, y); }
  void activate_backward(Activation activation, const Tensor& at, const Tensor& dy, const Tensor& dx) const {
    unary_backward(unary_of(activation), at, dy, dx);
  }
};

}  // namespace lockstep::kernels
