// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/elementwise.h"

#include <array>
#include <cmath>
#include <vector>

#include "amp/autocast/autocast.h"
#include "runtime/autograd/cast.h"
#include "runtime/autograd/node.h"
#include "runtime/autograd/record_observer.h"
#include "runtime/base/error.h"
#include "runtime/kernels/assign.h"
#include "runtime/kernels/elementwise.h"
#include "runtime/kernels/geometry/broadcast.h"
#include "runtime/kernels/geometry/operand_checks.h"
#include "runtime/ops/both_backwards.h"
#include "runtime/ops/broadcast.h"
#include "runtime/ops/broadcast_sum.h"
#include "runtime/ops/compare.h"
#include "runtime/ops/factories.h"
#include "runtime/ops/integers.h"
#include "runtime/ops/operand_gradients.h"
#include "runtime/ops/operation_options.h"
#include "runtime/ops/promoted.h"
#include "runtime/ops/result.h"
#include "runtime/ops/shape.h"
#include "runtime/ops/unary.h"

namespace lockstep::ops {

using autograd::BackwardContext;
using autograd::GradTarget;
using autograd::OnLosses;
using autograd::SavedTensor;
using kernels::Binary;
using kernels::Ternary;

namespace {

Tensor apply(Binary function, const Tensor& a, const Tensor& b) {
  const Shape shape = kernels::broadcast_shape(name_of(function), a.shape(), b.shape());
  const Tensor out = Tensor::empty(shape, a.dtype(), a.device());
  kernels::Elementwise::on(a.device()).binary(function, a, b, out);
  return out;
}

Tensor apply_with_number(Binary function, const Tensor& x, double number, bool number_first) {
  const Tensor out = empty_like(x);
  kernels::Elementwise::on(x.device()).binary_with_number(function, x, number, number_first, out);
  return out;
}

/// The backward of an operation on one tensor whose gradient is made of operations.
autograd::Backward backward_of(std::function<Tensor(const Tensor& grad, const BackwardContext& context)> gradient) {
  return {.recorded = [gradient = std::move(gradient)](const Tensor& grad, const BackwardContext& context) {
    return std::vector<Tensor>{gradient(grad, context)};
  }};
}

/// Integers as a division takes them: quotients are float32, as PyTorch's.
Tensor quotients(const Tensor& x) { return cast(x.detach(), DType::kFloat32); }

Tensor scaled(const Tensor& input, double factor, const float* device_factor) {
  const Tensor x = amp::autocast(amp::Op::kScale, input);
  const Tensor y = empty_like(x);
  kernels::scale(x, factor, device_factor, y);
  autograd::record(y, "scale", {x}, OnLosses::kMultiplies,
                   {.recorded = [factor, device_factor](const Tensor& grad, const BackwardContext&) {
                     return std::vector<Tensor>{scaled(grad, factor, device_factor)};
                   }});
  if (device_factor == nullptr) autograd::note_options(y, ScaleOptions{factor});
  return y;
}

/// Whether one of them is float32 and the other a 16-bit tensor of its shape. The kernel reads such an addend as it
/// lies: a cast would be a copy for nothing.
bool has_narrow_addend(const Tensor& a, const Tensor& b) {
  using kernels::checks::is_narrow_addend;
  return a.defined() && b.defined() && a.device() == b.device() &&
         (is_narrow_addend(Binary::kAdd, a, b) || is_narrow_addend(Binary::kAdd, b, a));
}

Tensor add_narrow(const Tensor& first, const Tensor& second) {
  // Asked for the trace's sake: type promotion holds with and without autocast, so the answer is known.
  static_cast<void>(amp::dtype_for(amp::Op::kAdd, first, second));
  static_cast<void>(amp::dtype_for(amp::Op::kAdd, second, first));
  const bool in_order = first.dtype() == DType::kFloat32;
  const Tensor out = apply(Binary::kAdd, in_order ? first : second, in_order ? second : first);
  const auto backward = [dtypes = std::array{first.dtype(), second.dtype()}](const Tensor& grad,
                                                                             const BackwardContext& context) {
    const auto gradient = [&](std::size_t i) { return context.needs(i) ? autograd::cast(grad, dtypes[i]) : Tensor(); };
    return std::vector{gradient(0), gradient(1)};
  };
  autograd::record(out, "add", {first, second}, OnLosses::kAdds, {.recorded = backward});
  return out;
}

}  // namespace

Tensor add(const Tensor& first, const Tensor& second) {
  if (has_narrow_addend(first, second)) return add_narrow(first, second);
  if (are_integers(amp::Op::kAdd, first, second)) {
    return in_integers(first, second, [](const Tensor& a, const Tensor& b) { return add(a, b); });
  }
  const auto [a, b] = Operands(amp::Op::kAdd, first, second);
  const Tensor out = apply(Binary::kAdd, a, b);
  autograd::record(out, "add", {a, b}, OnLosses::kAdds,
                   backward_of({a, b}, out, Wide::kNever,
                               [](const Tensor& grad, const BackwardContext&, std::size_t) { return grad; }));
  return out;
}

Tensor add(const Tensor& first, double b) {
  if (counts_in_integers(amp::Op::kAdd, first, {})) {
    return in_integers(amp::Op::kAdd, first, b, [](const Tensor& x, double number) { return add(x, number); });
  }
  const Tensor a = amp::autocast(amp::Op::kAdd, first);
  const Tensor out = apply_with_number(Binary::kAdd, a, b, false);
  autograd::record(out, "add", {a}, OnLosses::kAdds,
                   backward_of([](const Tensor& grad, const BackwardContext&) { return grad; }));
  autograd::note_options(out, BinaryOptions{Binary::kAdd, true, b, false});
  return out;
}

Tensor sub(const Tensor& first, const Tensor& second) {
  if (are_integers(amp::Op::kSub, first, second)) {
    if (first.dtype() == DType::kBool && second.dtype() == DType::kBool) {
      throw UsageError("sub: the difference of two bool tensors has no meaning", "ops::ne says where they differ.");
    }
    return in_integers(first, second, [](const Tensor& a, const Tensor& b) { return sub(a, b); });
  }
  const auto [a, b] = Operands(amp::Op::kSub, first, second);
  const Tensor out = apply(Binary::kSub, a, b);
  autograd::record(
      out, "sub", {a, b}, OnLosses::kAdds,
      backward_of({a, b}, out, Wide::kNever,
                  [](const Tensor& grad, const BackwardContext&, std::size_t i) { return i == 0 ? grad : neg(grad); }));
  return out;
}

Tensor sub(const Tensor& a, double b) { return add(a, -b); }

Tensor sub(double a, const Tensor& second) {
  if (counts_in_integers(amp::Op::kSub, second, {})) {
    return in_integers(amp::Op::kSub, second, a, [](const Tensor& x, double number) { return sub(number, x); });
  }
  const Tensor b = amp::autocast(amp::Op::kSub, second);
  const Tensor out = apply_with_number(Binary::kSub, b, a, true);
  autograd::record(out, "sub", {b}, OnLosses::kAdds,
                   backward_of([](const Tensor& grad, const BackwardContext&) { return neg(grad); }));
  autograd::note_options(out, BinaryOptions{Binary::kSub, true, a, true});
  return out;
}

namespace {

/// The backward of a product.
struct OfFactors {
  SavedTensor a;
  SavedTensor b;
  Shape shape;  ///< of the product

  const SavedTensor& factor(std::size_t i) const { return i == 0 ? a : b; }

  std::vector<Tensor> recorded(const Tensor& grad, const BackwardContext& context) const {
    std::vector<Tensor> grads(2);
    for (std::size_t i = 0; i < 2; ++i) {
      if (!context.needs(i)) continue;
      const Shape& own = factor(i).peek().shape();
      const Tensor& other = context.saved(factor(1 - i));
      grads[i] = own == shape ? mul(grad, other)
                              : autograd::cast(sum_to(mul(widened(grad), widened(other)), own), grad.dtype());
    }
    return grads;
  }

  std::vector<Tensor> fused(const Tensor& grad, const BackwardContext& context) const {
    std::vector<Tensor> grads(2);
    for (std::size_t i = 0; i < 2; ++i) {
      if (!context.needs(i)) continue;
      const Tensor& other = context.saved(factor(1 - i));
      if (factor(i).peek().shape() == shape) {
        grads[i] = mul(grad, other);
        continue;
      }
      // The sum goes where a parameter's gradient belongs.
      const GradTarget target = context.target(i, factor(i).peek());
      sum_of_products(grad, other, target.accumulate, target.out);
      grads[i] = target.out;
    }
    return grads;
  }
};

}  // namespace

Tensor mul(const Tensor& first, const Tensor& second) {
  if (are_integers(amp::Op::kMul, first, second)) {
    return in_integers(first, second, [](const Tensor& a, const Tensor& b) { return mul(a, b); });
  }
  const auto [a, b] = Operands(amp::Op::kMul, first, second);
  const Tensor out = apply(Binary::kMul, a, b);
  // The operands keep their place in the graph, so that the backward can be differentiated.
  autograd::record(out, "mul", {a, b}, OnLosses::kMultiplies,
                   both_of(OfFactors{SavedTensor::in_graph(a), SavedTensor::in_graph(b), out.shape()}));
  return out;
}

Tensor mul(const Tensor& a, double b) {
  if (!counts_in_integers(amp::Op::kMul, a, {})) return scale(a, b);
  return in_integers(amp::Op::kMul, a, b,
                     [](const Tensor& x, double number) { return mul(x, new_full(x, {}, number)); });
}

Tensor div(const Tensor& first, const Tensor& second) {
  if (are_integers(amp::Op::kDiv, first, second)) return div(quotients(first), quotients(second));
  const auto [a, b] = Operands(amp::Op::kDiv, first, second);
  const Tensor out = apply(Binary::kDiv, a, b);
  autograd::record(out, "div", {a, b}, OnLosses::kMultiplies,
                   backward_of({a, b}, out, Wide::kSummed,
                               [a = SavedTensor::in_graph(a), b = SavedTensor::in_graph(b)](
                                   const Tensor& grad, const BackwardContext& context, std::size_t i) {
                                 const Tensor divisor = operand(b, grad, context);
                                 if (i == 0) return div(grad, divisor);
                                 return neg(mul(grad, div(div(operand(a, grad, context), divisor), divisor)));
                               }));
  return out;
}

Tensor div(const Tensor& first, double b) {
  if (counts_in_integers(amp::Op::kDiv, first, {})) return div(quotients(first), b);
  const Tensor a = amp::autocast(amp::Op::kDiv, first);
  const Tensor out = apply_with_number(Binary::kDiv, a, b, false);
  autograd::record(out, "div", {a}, OnLosses::kMultiplies,
                   backward_of([b](const Tensor& grad, const BackwardContext&) { return div(grad, b); }));
  return out;
}

Tensor div(double a, const Tensor& second) {
  if (counts_in_integers(amp::Op::kDiv, second, {})) return div(a, quotients(second));
  const Tensor b = amp::autocast(amp::Op::kDiv, second);
  const Tensor out = apply_with_number(Binary::kDiv, b, a, true);
  autograd::record(out, "div", {b}, OnLosses::kMultiplies,
                   backward_of([a, b = SavedTensor::in_graph(b)](const Tensor& grad, const BackwardContext& context) {
                     const Tensor& divisor = context.saved(b);
                     return neg(mul(grad, div(div(a, divisor), divisor)));
                   }));
  return out;
}

Tensor pow(const Tensor& first, const Tensor& second) {
  const auto [a, b] = Operands(amp::Op::kPow, first, second);
  const Tensor out = apply(Binary::kPow, a, b);
  // A 16-bit result is computed again: it is rounded.
  const SavedTensor y = is_reduced(out.dtype()) ? SavedTensor() : SavedTensor(out);
  autograd::record(out, "pow", {a, b},
                   backward_of({a, b}, out, Wide::kAlways,
                               [a = SavedTensor::in_graph(a), b = SavedTensor::in_graph(b), y](
                                   const Tensor& grad, const BackwardContext& context, std::size_t i) {
                                 const Tensor base = operand(a, grad, context);
                                 const Tensor exponent = operand(b, grad, context);
                                 if (i == 0) {
                                   const Tensor slope = mul(exponent, pow(base, sub(exponent, 1)));
                                   return mul(grad, where(eq(exponent, 0), 0, slope));
                                 }
                                 // 0^b is 0 next to b too, where the logarithm has no number.
                                 const Tensor without_slope = ge(where(eq(base, 0), exponent, -1), 0);
                                 const Tensor power = y.peek().defined() ? context.result(y) : pow(base, exponent);
                                 return mul(grad, where(without_slope, 0, mul(power, log(base))));
                               }));
  return out;
}

Tensor pow(const Tensor& first, double b) {
  const Tensor a = amp::autocast(amp::Op::kPow, first);
  const Tensor out = apply_with_number(Binary::kPow, a, b, false);
  autograd::record(out, "pow", {a},
                   backward_of([b, a = SavedTensor::in_graph(a)](const Tensor& grad, const BackwardContext& context) {
                     if (b == 0) return zeros_like(grad);
                     return mul(grad, scale(pow(context.saved(a), b - 1), b));
                   }));
  return out;
}

Tensor pow(double a, const Tensor& second) {
  const Tensor b = amp::autocast(amp::Op::kPow, second);
  const Tensor out = apply_with_number(Binary::kPow, b, a, true);
  autograd::record(out, "pow", {b},
                   backward_of([a, b = SavedTensor::in_graph(b), y = SavedTensor(out)](const Tensor& grad,
                                                                                       const BackwardContext& context) {
                     const Tensor slope = scale(context.result(y), std::log(a));
                     return mul(grad, a == 0 ? where(ge(context.saved(b), 0), 0, slope) : slope);
                   }));
  return out;
}

Tensor atan2(const Tensor& first, const Tensor& second) {
  const auto [y, x] = Operands(amp::Op::kAtan2, first, second);
  const Tensor out = apply(Binary::kAtan2, y, x);
  autograd::record(out, "atan2", {y, x},
                   backward_of({y, x}, out, Wide::kAlways,
                               [y = SavedTensor::in_graph(y), x = SavedTensor::in_graph(x)](
                                   const Tensor& grad, const BackwardContext& context, std::size_t i) {
                                 const Tensor up = operand(y, grad, context);
                                 const Tensor across = operand(x, grad, context);
                                 const Tensor square = add(mul(up, up), mul(across, across));
                                 const Tensor none = eq(square.detach(), 0);
                                 const Tensor slope = div(i == 0 ? across : neg(up), where(none, 1, square));
                                 return mul(grad, where(none, 0, slope));
                               }));
  return out;
}

namespace {

/// The gradient of maximum(a, b) by a, which is linear in that of the result.
Tensor share_of_maximum(const Tensor& a, const Tensor& b, const Tensor& grad) {
  const Tensor out = empty_like(grad);
  kernels::Elementwise::on(grad.device()).ternary({Ternary::kMaximumBackward}, a, b, grad, out);
  autograd::record(
      out, "maximum_backward", {grad},
      backward_of([a = SavedTensor(a), b = SavedTensor(b)](const Tensor& of_out, const BackwardContext& context) {
        return share_of_maximum(context.saved(a), context.saved(b), of_out);
      }));
  return out;
}

Tensor extremum(amp::Op op, Binary function, const Tensor& first, const Tensor& second) {
  if (are_integers(op, first, second)) {
    return in_integers(first, second, [&](const Tensor& a, const Tensor& b) { return extremum(op, function, a, b); });
  }
  const auto [a, b] = Operands(op, first, second);
  const Tensor out = apply(function, a, b);
  const bool largest = function == Binary::kMaximum;
  autograd::record(out, name_of(op), {a, b},
                   backward_of({a, b}, out, Wide::kNever,
                               [largest, a = SavedTensor(a), b = SavedTensor(b)](
                                   const Tensor& grad, const BackwardContext& context, std::size_t i) {
                                 const bool a_first = (i == 0) == largest;
                                 return share_of_maximum(context.saved(a_first ? a : b), context.saved(a_first ? b : a),
                                                         grad);
                               }));
  return out;
}

}  // namespace

Tensor maximum(const Tensor& a, const Tensor& b) { return extremum(amp::Op::kMaximum, Binary::kMaximum, a, b); }
Tensor minimum(const Tensor& a, const Tensor& b) { return extremum(amp::Op::kMinimum, Binary::kMinimum, a, b); }

Tensor clamp(const Tensor& x, const Tensor& low, const Tensor& high) {
  const Tensor raised = low.defined() ? maximum(x, low) : x;
  return high.defined() ? minimum(raised, high) : raised;
}

Tensor prelu(const Tensor& input, const Tensor& weight_in) {
  const Operands operands(amp::Op::kPrelu, input, weight_in);
  const Tensor& x = operands.a;
  // One number has any rank, and the result has x's.
  const bool deeper = operands.b.numel() == 1 && operands.b.shape().rank() > x.shape().rank();
  const Tensor weight = deeper ? reshape(operands.b, {}) : operands.b;
  const bool fits = weight.numel() == 1 || (x.shape().rank() > 0 && weight.shape() == Shape{x.shape().back()});
  if (!fits)
    throw ShapeError("prelu of " + describe(x) + ": the weight must be one number or [channels], found " +
                     describe(weight));
  const Tensor out = apply(Binary::kPrelu, x, weight);
  const auto recorded = [x = SavedTensor::in_graph(x), weight = SavedTensor::in_graph(weight)](
                            const Tensor& grad, const BackwardContext& context) {
    const Tensor& at = context.saved(x);
    const Tensor& slope = context.saved(weight);
    std::vector<Tensor> grads(2);
    if (context.needs(0)) grads[0] = where(gt(at, 0), grad, mul(grad, slope));
    if (context.needs(1)) grads[1] = sum_to(mul(widened(grad), widened(clamp(at, -kInfinite, 0))), slope.shape());
    return grads;
  };
  const auto fused = [x = SavedTensor(x), weight = SavedTensor(weight)](const Tensor& grad,
                                                                        const BackwardContext& context) {
    const Tensor& at = context.saved(x);
    std::vector<Tensor> grads(2);
    if (context.needs(0)) {
      grads[0] = empty_like(grad);
      kernels::Elementwise::on(grad.device())
          .ternary({Ternary::kPreluBackward}, at, context.saved(weight), grad, grads[0]);
    }
    if (context.needs(1)) {
      const GradTarget target = context.target(1, weight.peek());
      sum_of_products(grad, clamp(at, -kInfinite, 0), target.accumulate, target.out);
      grads[1] = target.out;
    }
    return grads;
  };
  autograd::record(out, "prelu", {x, weight}, {.fused = fused, .recorded = recorded});
  return out;
}

Tensor scale(const Tensor& x, double factor) { return scaled(x, factor, nullptr); }
Tensor scale_by(const Tensor& x, const float* device_factor) { return scaled(x, 1.0, device_factor); }

}  // namespace lockstep::ops
