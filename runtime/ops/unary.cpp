// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/unary.h"

#include <cmath>
#include <numbers>
#include <string>
#include <utility>

#include "amp/autocast/autocast.h"
#include "runtime/autograd/node.h"
#include "runtime/autograd/record_observer.h"
#include "runtime/base/error.h"
#include "runtime/kernels/pointwise.h"
#include "runtime/ops/compare.h"
#include "runtime/ops/elementwise.h"
#include "runtime/ops/movement.h"
#include "runtime/ops/result.h"
#include "runtime/ops/shape.h"

namespace lockstep::ops {

using autograd::BackwardContext;
using autograd::SavedTensor;
using kernels::Activation;
using kernels::Unary;
using kernels::UnaryFunction;

namespace {

/// dy * function'(at) of a function that is linear piece by piece: a constant but for dy.
Tensor times_constant_slope(const UnaryFunction& function, const Tensor& at, const Tensor& dy) {
  const Tensor dx = empty_like(dy);
  kernels::Pointwise::on(dy.device()).unary_backward(function, at, dy, dx);
  autograd::record(dx, "slope", {dy},
                   {.recorded = [function, at = SavedTensor(at)](const Tensor& ddx, const BackwardContext& context) {
                     return std::vector<Tensor>{times_constant_slope(function, context.saved(at), ddx)};
                   }});
  return dx;
}

/// function'(x) by operations. `y` is its result, defined where derivative_follows_from_output(), and otherwise x is.
Tensor derivative(const UnaryFunction& function, const Tensor& x, const Tensor& y) {
  switch (function.kind) {
    case Unary::kTanh:
      return sub(1, mul(y, y));
    case Unary::kSigmoid:
      return mul(y, sub(1, y));
    case Unary::kGelu: {
      const Tensor cumulative = scale(add(erf(scale(x, 1 / std::numbers::sqrt2)), 1), 0.5);
      const Tensor density = scale(exp(scale(mul(x, x), -0.5)), 1 / std::sqrt(2 * std::numbers::pi));
      return add(cumulative, mul(x, density));
    }
    case Unary::kGeluTanh: {
      const double root = std::sqrt(2 / std::numbers::pi);
      const Tensor square = mul(x, x);
      const Tensor t = tanh(scale(mul(x, add(scale(square, 0.044715), 1)), root));
      const Tensor slope = scale(add(scale(square, 3 * 0.044715), 1), root);
      return scale(add(add(t, 1), mul(mul(x, sub(1, mul(t, t))), slope)), 0.5);
    }
    case Unary::kSqrt:
      return div(0.5, y);
    case Unary::kRsqrt:
      return scale(mul(mul(y, y), y), -0.5);
    case Unary::kReciprocal:
      return neg(mul(y, y));
    case Unary::kExp:
      return y;
    case Unary::kExpm1:
      return exp(x);
    case Unary::kLog:
      return reciprocal(x);
    case Unary::kLog1p:
      return reciprocal(add(x, 1));
    case Unary::kLog2:
      return reciprocal(scale(x, std::numbers::ln2));
    case Unary::kLog10:
      return reciprocal(scale(x, std::numbers::ln10));
    case Unary::kSin:
      return cos(x);
    case Unary::kCos:
      return neg(sin(x));
    case Unary::kTan: {
      const Tensor cosine = cos(x);
      return reciprocal(mul(cosine, cosine));
    }
    case Unary::kSinh:
      return cosh(x);
    case Unary::kCosh:
      return sinh(x);
    case Unary::kAsin:
      return rsqrt(mul(sub(1, x), add(x, 1)));
    case Unary::kAcos:
      return neg(rsqrt(mul(sub(1, x), add(x, 1))));
    case Unary::kAtan:
      return reciprocal(add(mul(x, x), 1));
    case Unary::kErf:
      return scale(exp(neg(mul(x, x))), 2 * std::numbers::inv_sqrtpi);
    case Unary::kErfinv:
      return scale(exp(mul(y, y)), 1 / (2 * std::numbers::inv_sqrtpi));
    case Unary::kSilu: {
      const Tensor s = sigmoid(x);
      return mul(s, add(mul(x, sub(1, s)), 1));
    }
    case Unary::kElu:
      return where(gt(x, 0), 1, scale(exp(clamp(x, -kInfinite, 0)), function.first));
    case Unary::kSoftplus: {
      const Tensor scaled = scale(x, function.first);
      return where(gt(scaled, function.second), 1, sigmoid(scaled));
    }
    case Unary::kIdentity:
    case Unary::kRelu:
    case Unary::kNeg:
    case Unary::kAbs:
    case Unary::kLeakyRelu:
    case Unary::kClamp:
    case Unary::kSign:
    case Unary::kFloor:
    case Unary::kCeil:
    case Unary::kRound:
    case Unary::kTrunc:
      break;
  }
  throw UsageError("function " + std::to_string(static_cast<int>(function.kind)) + " has a slope of constant pieces");
}

bool has_constant_slopes(Unary function) {
  switch (function) {
    case Unary::kIdentity:
    case Unary::kRelu:
    case Unary::kNeg:
    case Unary::kAbs:
    case Unary::kLeakyRelu:
    case Unary::kClamp:
    case Unary::kSign:
    case Unary::kFloor:
    case Unary::kCeil:
    case Unary::kRound:
    case Unary::kTrunc:
      return true;
    default:
      return false;
  }
}

/// dy * function'(at), made of operations: the gradient of a function, which can be differentiated. Rounded once.
Tensor gradient_of(const UnaryFunction& function, const Tensor& at, const Tensor& dy) {
  if (has_constant_slopes(function.kind)) return times_constant_slope(function, at.detach(), dy);
  const bool from_output = kernels::derivative_follows_from_output(function.kind);
  const Tensor wide = widened(at);
  const Tensor slope = derivative(function, from_output ? Tensor() : wide, from_output ? wide : Tensor());
  return cast(mul(widened(dy), slope), dy.dtype());
}

/// `activation`: what the function is to a product that makes its gradient; kNone for others.
Tensor unary(amp::Op op, const UnaryFunction& function, const Tensor& input,
             Activation activation = Activation::kNone) {
  const Tensor x = amp::autocast(op, input);
  const Tensor y = empty_like(x);
  kernels::Pointwise::on(x.device()).unary(function, x, y);
  const bool from_output = kernels::derivative_follows_from_output(function.kind);
  const SavedTensor at = from_output ? SavedTensor(y) : SavedTensor::in_graph(x);
  const auto fused = [function, at](const Tensor& dy, const BackwardContext& context) {
    if (context.multiplied()) return std::vector<Tensor>{dy};
    const Tensor dx = empty_like(dy);
    kernels::Pointwise::on(dy.device()).unary_backward(function, context.saved(at), dy, dx);
    return std::vector<Tensor>{dx};
  };
  const auto recorded = [function, at, from_output](const Tensor& dy, const BackwardContext& context) {
    return std::vector<Tensor>{gradient_of(function, from_output ? context.result(at) : context.saved(at), dy)};
  };
  autograd::Backward backward{.fused = fused, .recorded = recorded};
  if (activation != Activation::kNone) backward.derivative = {activation, at};
  const bool negates = function.kind == Unary::kNeg;
  const auto on_losses = negates ? autograd::OnLosses::kMultiplies : autograd::OnLosses::kMakes;
  autograd::record(y, name_of(op), {x}, on_losses, std::move(backward));
  autograd::note_options(y, function);
  return y;
}

}  // namespace

amp::Op op_of(Activation activation) {
  switch (activation) {  // no default: the compiler asks for a new one
    case Activation::kNone:
      break;
    case Activation::kRelu:
      return amp::Op::kRelu;
    case Activation::kGelu:
      return amp::Op::kGelu;
    case Activation::kGeluTanh:
      return amp::Op::kGeluTanh;
    case Activation::kTanh:
      return amp::Op::kTanh;
    case Activation::kSigmoid:
      return amp::Op::kSigmoid;
  }
  throw UsageError("an activation that is no operation");
}

Tensor activate(Activation activation, const Tensor& x) {
  if (activation == Activation::kNone) return x;
  return unary(op_of(activation), kernels::unary_of(activation), x, activation);
}

Tensor activation_gradient(Activation activation, const Tensor& at, const Tensor& dy) {
  return activation == Activation::kNone ? dy : gradient_of(kernels::unary_of(activation), at, dy);
}

Tensor neg(const Tensor& x) { return unary(amp::Op::kNeg, Unary::kNeg, x); }
Tensor abs(const Tensor& x) { return unary(amp::Op::kAbs, Unary::kAbs, x); }
Tensor sqrt(const Tensor& x) { return unary(amp::Op::kSqrt, Unary::kSqrt, x); }
Tensor rsqrt(const Tensor& x) { return unary(amp::Op::kRsqrt, Unary::kRsqrt, x); }
Tensor reciprocal(const Tensor& x) { return unary(amp::Op::kReciprocal, Unary::kReciprocal, x); }
Tensor exp(const Tensor& x) { return unary(amp::Op::kExp, Unary::kExp, x); }
Tensor expm1(const Tensor& x) { return unary(amp::Op::kExpm1, Unary::kExpm1, x); }
Tensor log(const Tensor& x) { return unary(amp::Op::kLog, Unary::kLog, x); }
Tensor log1p(const Tensor& x) { return unary(amp::Op::kLog1p, Unary::kLog1p, x); }
Tensor log2(const Tensor& x) { return unary(amp::Op::kLog2, Unary::kLog2, x); }
Tensor log10(const Tensor& x) { return unary(amp::Op::kLog10, Unary::kLog10, x); }
Tensor sin(const Tensor& x) { return unary(amp::Op::kSin, Unary::kSin, x); }
Tensor cos(const Tensor& x) { return unary(amp::Op::kCos, Unary::kCos, x); }
Tensor tan(const Tensor& x) { return unary(amp::Op::kTan, Unary::kTan, x); }
Tensor sinh(const Tensor& x) { return unary(amp::Op::kSinh, Unary::kSinh, x); }
Tensor cosh(const Tensor& x) { return unary(amp::Op::kCosh, Unary::kCosh, x); }
Tensor asin(const Tensor& x) { return unary(amp::Op::kAsin, Unary::kAsin, x); }
Tensor acos(const Tensor& x) { return unary(amp::Op::kAcos, Unary::kAcos, x); }
Tensor atan(const Tensor& x) { return unary(amp::Op::kAtan, Unary::kAtan, x); }
Tensor erf(const Tensor& x) { return unary(amp::Op::kErf, Unary::kErf, x); }
Tensor erfinv(const Tensor& x) { return unary(amp::Op::kErfinv, Unary::kErfinv, x); }
Tensor sign(const Tensor& x) { return unary(amp::Op::kSign, Unary::kSign, x); }
Tensor floor(const Tensor& x) { return unary(amp::Op::kFloor, Unary::kFloor, x); }
Tensor ceil(const Tensor& x) { return unary(amp::Op::kCeil, Unary::kCeil, x); }
Tensor round(const Tensor& x) { return unary(amp::Op::kRound, Unary::kRound, x); }
Tensor trunc(const Tensor& x) { return unary(amp::Op::kTrunc, Unary::kTrunc, x); }
Tensor silu(const Tensor& x) { return unary(amp::Op::kSilu, Unary::kSilu, x); }

Tensor leaky_relu(const Tensor& x, double slope) { return unary(amp::Op::kLeakyRelu, {Unary::kLeakyRelu, slope}, x); }

Tensor elu(const Tensor& x, double alpha) { return unary(amp::Op::kElu, {Unary::kElu, alpha}, x); }

Tensor softplus(const Tensor& x, double beta, double threshold) {
  if (beta == 0) throw UsageError("softplus: beta is 0, by which the result is divided");
  return unary(amp::Op::kSoftplus, {Unary::kSoftplus, beta, threshold}, x);
}

Tensor clamp(const Tensor& x, double low, double high) {
  if (!(low <= high)) {
    throw UsageError("clamp: the lower end " + std::to_string(low) + " lies above the upper one, " +
                     std::to_string(high));
  }
  return unary(amp::Op::kClamp, {Unary::kClamp, low, high}, x);
}

Tensor glu(const Tensor& x, int dim_in) {
  const int dim = dim_of("glu", dim_in, x);
  if (x.shape().rank() == 0 || x.size(dim) % 2 != 0) {
    throw ShapeError("glu of " + describe(x) + ": dimension " + std::to_string(dim) + " has no two halves");
  }
  const std::vector<Tensor> halves = split(x, x.size(dim) / 2, dim);
  return mul(halves.front(), sigmoid(halves.back()));
}

}  // namespace lockstep::ops
