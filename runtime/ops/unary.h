// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>

#include "amp/autocast/policy.h"
#include "runtime/ops/types.h"
#include "runtime/tensor/tensor.h"

// Functions of one number, applied to every element. In float32 they are within 4 units of the last place; 16-bit
// results are rounded once. The backward pass keeps the output where the derivative follows from that, else x.

namespace lockstep::ops {

inline constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// activation(x); x itself for kNone.
[[nodiscard]] Tensor activate(Activation activation, const Tensor& x);

[[nodiscard]] inline Tensor relu(const Tensor& x) { return activate(Activation::kRelu, x); }
/// x * (1 + erf(x / sqrt 2)) / 2
[[nodiscard]] inline Tensor gelu(const Tensor& x) { return activate(Activation::kGelu, x); }
/// x * (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2: gelu's approximation, PyTorch's approximate="tanh".
[[nodiscard]] inline Tensor gelu_tanh(const Tensor& x) { return activate(Activation::kGeluTanh, x); }
[[nodiscard]] inline Tensor tanh(const Tensor& x) { return activate(Activation::kTanh, x); }
/// 1 / (1 + e^-x)
[[nodiscard]] inline Tensor sigmoid(const Tensor& x) { return activate(Activation::kSigmoid, x); }

[[nodiscard]] Tensor neg(const Tensor& x);
/// |x|; the derivative at 0 is 0.
[[nodiscard]] Tensor abs(const Tensor& x);
[[nodiscard]] Tensor sqrt(const Tensor& x);
/// 1 / sqrt x
[[nodiscard]] Tensor rsqrt(const Tensor& x);
/// 1 / x
[[nodiscard]] Tensor reciprocal(const Tensor& x);
[[nodiscard]] Tensor exp(const Tensor& x);
/// e^x - 1, with the digits of small x
[[nodiscard]] Tensor expm1(const Tensor& x);
/// -inf at 0, NaN below.
[[nodiscard]] Tensor log(const Tensor& x);
/// log(1 + x), with the digits of small x
[[nodiscard]] Tensor log1p(const Tensor& x);
[[nodiscard]] Tensor log2(const Tensor& x);
[[nodiscard]] Tensor log10(const Tensor& x);
/// Takes any x. Beyond 2^29 it runs on the slower path of double arithmetic; so do cos and tan.
[[nodiscard]] Tensor sin(const Tensor& x);
[[nodiscard]] Tensor cos(const Tensor& x);
[[nodiscard]] Tensor tan(const Tensor& x);
[[nodiscard]] Tensor sinh(const Tensor& x);
[[nodiscard]] Tensor cosh(const Tensor& x);
[[nodiscard]] Tensor asin(const Tensor& x);
[[nodiscard]] Tensor acos(const Tensor& x);
[[nodiscard]] Tensor atan(const Tensor& x);
[[nodiscard]] Tensor erf(const Tensor& x);
/// The number whose erf is x: infinite at -1 and 1, NaN beyond.
[[nodiscard]] Tensor erfinv(const Tensor& x);
/// x / (1 + e^-x)
[[nodiscard]] Tensor silu(const Tensor& x);
/// a * sigmoid(b) of the two halves of x along a dimension, whose extent is even.
[[nodiscard]] Tensor glu(const Tensor& x, int dim = -1);
/// x where x > 0, else slope * x
[[nodiscard]] Tensor leaky_relu(const Tensor& x, double slope = 0.01);
/// x where x > 0, else alpha * (e^x - 1)
[[nodiscard]] Tensor elu(const Tensor& x, double alpha = 1);
/// log(1 + e^(beta x)) / beta; x where beta x > threshold. Throws UsageError for beta 0.
[[nodiscard]] Tensor softplus(const Tensor& x, double beta = 1, double threshold = 20);
/// x, but at least `low` and at most `high`; NaN stays. The derivative is 1 between the two, else 0. Throws
/// UsageError where low > high.
[[nodiscard]] Tensor clamp(const Tensor& x, double low, double high = kInfinite);

/// 1, 0 or -1; 0 for NaN. Its derivative is 0, as that of the four functions below.
[[nodiscard]] Tensor sign(const Tensor& x);
[[nodiscard]] Tensor floor(const Tensor& x);
[[nodiscard]] Tensor ceil(const Tensor& x);
/// To the nearest whole number, a half to the even one.
[[nodiscard]] Tensor round(const Tensor& x);
/// Towards 0.
[[nodiscard]] Tensor trunc(const Tensor& x);

/// dy * activation'(at) of every element, made of operations: the gradient of an activation. `at` is its output where
/// derivative_follows_from_output(activation), else its input.
[[nodiscard]] Tensor activation_gradient(Activation activation, const Tensor& at, const Tensor& dy);

/// The operation that an activation is: its name in the graph and its row in autocast's policy table. Throws UsageError
/// for kNone.
[[nodiscard]] amp::Op op_of(Activation activation);

}  // namespace lockstep::ops
