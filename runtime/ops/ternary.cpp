// SPDX-License-Identifier: Apache-2.0
// The functions of three numbers of elementwise.h.
#include "runtime/autograd/node.h"
#include "runtime/kernels/elementwise.h"
#include "runtime/kernels/geometry/broadcast.h"
#include "runtime/ops/elementwise.h"
#include "runtime/ops/factories.h"
#include "runtime/ops/operand_gradients.h"
#include "runtime/ops/promoted.h"

namespace lockstep::ops {

using autograd::BackwardContext;
using autograd::SavedTensor;
using kernels::Ternary;
using kernels::TernaryFunction;

namespace {

/// Three operands in one dtype, and a function of them.
Tensor apply(amp::Op op, const TernaryFunction& function, Tensor& a, Tensor& b, Tensor& c) {
  const Operands first(op, a, b), second(op, first.a, c);
  c = second.b;
  a = second.a;
  b = Operands(op, first.b, c).a;
  const Shape shape =
      kernels::broadcast_shape(name_of(op), kernels::broadcast_shape(name_of(op), a.shape(), b.shape()), c.shape());
  const Tensor out = Tensor::empty(shape, a.dtype(), a.device());
  kernels::Elementwise::on(a.device()).ternary(function, a, b, c, out);
  return out;
}

}  // namespace

Tensor lerp(const Tensor& first, const Tensor& second, const Tensor& weight) {
  Tensor a = first, b = second, w = weight;
  const Tensor out = apply(amp::Op::kLerp, {Ternary::kLerp}, a, b, w);
  autograd::record(
      out, "lerp", {a, b, w},
      backward_of({a, b, w}, out, Wide::kSummed,
                  [a = SavedTensor::in_graph(a), b = SavedTensor::in_graph(b), w = SavedTensor::in_graph(w)](
                      const Tensor& grad, const BackwardContext& context, std::size_t i) {
                    if (i == 0) return mul(grad, sub(1, operand(w, grad, context)));
                    if (i == 1) return mul(grad, operand(w, grad, context));
                    return mul(grad, sub(operand(b, grad, context), operand(a, grad, context)));
                  }));
  return out;
}

Tensor lerp(const Tensor& a, const Tensor& b, double weight) { return lerp(a, b, new_full(a, {}, weight)); }

Tensor addcmul(const Tensor& first, const Tensor& second, const Tensor& third, double value) {
  Tensor a = first, b = second, c = third;
  const Tensor out = apply(amp::Op::kAddcmul, {Ternary::kAddcmul, value}, a, b, c);
  autograd::record(out, "addcmul", {a, b, c},
                   backward_of({a, b, c}, out, Wide::kSummed,
                               [value, b = SavedTensor::in_graph(b), c = SavedTensor::in_graph(c)](
                                   const Tensor& grad, const BackwardContext& context, std::size_t i) {
                                 if (i == 0) return grad;
                                 return scale(mul(grad, operand(i == 1 ? c : b, grad, context)), value);
                               }));
  return out;
}

Tensor addcdiv(const Tensor& first, const Tensor& second, const Tensor& third, double value) {
  Tensor a = first, b = second, c = third;
  const Tensor out = apply(amp::Op::kAddcdiv, {Ternary::kAddcdiv, value}, a, b, c);
  autograd::record(out, "addcdiv", {a, b, c},
                   backward_of({a, b, c}, out, Wide::kAlways,
                               [value, b = SavedTensor::in_graph(b), c = SavedTensor::in_graph(c)](
                                   const Tensor& grad, const BackwardContext& context, std::size_t i) {
                                 if (i == 0) return grad;
                                 const Tensor divisor = operand(c, grad, context);
                                 if (i == 1) return scale(div(grad, divisor), value);
                                 return scale(mul(grad, div(div(operand(b, grad, context), divisor), divisor)), -value);
                               }));
  return out;
}

}  // namespace lockstep::ops
