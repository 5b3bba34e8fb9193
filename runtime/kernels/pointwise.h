// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/kernels/activation.h"
#include "runtime/kernels/step_position.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::kernels {

/// A key of the counter-based generator: the same key and element index give the same mask on every rank and device.
struct DropoutKey {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  std::uint32_t layer = 0;
  std::uint32_t call = 0;  ///< of the layer within the step, from 0 to 2^24 - 1
  /// Device memory, read when the kernel runs and added to `step` and, in elements, to the first element: what differs
  /// from one replay of a captured step to the next. Null: nothing is added.
  const StepPosition* position = nullptr;
};

/// Functions of one number, applied to every element, and dropout.
struct Pointwise {
  /// y = activation(x), of x's shape and dtype. y may alias x.
  void (*activate)(Activation activation, const Tensor& x, const Tensor& y);
  /// dx = dy * activation'(at). `at` is the activation's output where derivative_follows_from_output(activation), else
  /// its input. All of one shape and dtype. dx may alias dy.
  void (*activate_backward)(Activation activation, const Tensor& at, const Tensor& dy, const Tensor& dx);
  /// y = x * mask / (1 - p), where element i of x is number first_element + i of the global tensor and its mask is
  /// uniform(key, number) >= p, runtime/base/counter_rng.h. The backward pass is the same call on dy. y may alias x.
  void (*dropout)(const Tensor& x, double p, const DropoutKey& key, std::int64_t first_element, const Tensor& y);
};

}  // namespace lockstep::kernels
