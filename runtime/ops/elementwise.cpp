// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/elementwise.h"

#include "amp/autocast/autocast.h"
#include "runtime/autograd/node.h"
#include "runtime/kernels/backend.h"
#include "runtime/ops/result.h"

namespace lockstep::ops {

using autograd::BackwardContext;
using autograd::SavedTensor;
using kernels::Activation;

namespace {

/// The gradient of an operand that may have been broadcast over rows.
Tensor reduce_like(const Tensor& grad, const Tensor& operand, const BackwardContext& context, std::size_t i) {
  if (operand.shape() == grad.shape()) return grad;
  const autograd::GradTarget target = context.target(i, operand);
  kernels::backend(grad.device()).sum_rows(grad, target.accumulate, target.out);
  return target.out;
}

/// The backward of an operation whose operands may differ in shape: then it takes a sum that is not recorded.
autograd::Backward once_or_twice(autograd::BackwardFunction backward, const Tensor& a, const Tensor& b) {
  if (a.shape() == b.shape()) return {.recorded = std::move(backward)};
  return {.fused = std::move(backward)};
}

Tensor scaled(const Tensor& input, double factor, const float* device_factor) {
  const Tensor x = amp::autocast(amp::Op::kScale, input);
  const Tensor y = empty_like(x);
  kernels::backend(x.device()).scale(x, factor, device_factor, y);
  autograd::record(y, "scale", {x}, {.recorded = [factor, device_factor](const Tensor& grad, const BackwardContext&) {
                     return std::vector<Tensor>{scaled(grad, factor, device_factor)};
                   }});
  return y;
}

}  // namespace

Tensor add(const Tensor& first, const Tensor& second) {
  const Tensor a = amp::autocast(amp::Op::kAdd, first, second);
  const Tensor b = amp::autocast(amp::Op::kAdd, second, first);
  const Tensor out = empty_like(a);
  kernels::backend(a.device()).add(a, b, out);
  const auto backward = [b = SavedTensor(b)](const Tensor& grad, const BackwardContext& context) {
    return std::vector<Tensor>{grad, context.needs(1) ? reduce_like(grad, b.peek(), context, 1) : Tensor()};
  };
  autograd::record(out, "add", {a, b}, once_or_twice(backward, a, b));
  return out;
}

Tensor mul(const Tensor& first, const Tensor& second) {
  const Tensor a = amp::autocast(amp::Op::kMul, first, second);
  const Tensor b = amp::autocast(amp::Op::kMul, second, first);
  const Tensor out = empty_like(a);
  kernels::backend(a.device()).multiply(a, b, out);
  // The operands keep their place in the graph, so that the backward can be differentiated.
  const auto backward = [a = SavedTensor::in_graph(a), b = SavedTensor::in_graph(b)](const Tensor& grad,
                                                                                     const BackwardContext& context) {
    std::vector<Tensor> grads(2);
    if (context.needs(0)) grads[0] = mul(grad, context.saved(b));
    if (context.needs(1)) grads[1] = reduce_like(mul(grad, context.saved(a)), b.peek(), context, 1);
    return grads;
  };
  autograd::record(out, "mul", {a, b}, once_or_twice(backward, a, b));
  return out;
}

Tensor scale(const Tensor& x, double factor) { return scaled(x, factor, nullptr); }
Tensor scale_by(const Tensor& x, const float* device_factor) { return scaled(x, 1.0, device_factor); }

Tensor activate(Activation activation, const Tensor& input) {
  if (activation == Activation::kNone) return input;
  const amp::Op op = op_of(activation);
  const Tensor x = amp::autocast(op, input);
  const Tensor y = empty_like(x);
  kernels::backend(x.device()).activate(activation, x, y);
  const SavedTensor at(kernels::derivative_follows_from_output(activation) ? y : x);
  autograd::record(y, name_of(op), {x},
                   {.fused =
                        [activation, at](const Tensor& dy, const BackwardContext& context) {
                          if (context.multiplied()) return std::vector<Tensor>{dy};
                          const Tensor dx = empty_like(dy);
                          kernels::backend(dy.device()).activate_backward(activation, context.saved(at), dy, dx);
                          return std::vector<Tensor>{dx};
                        },
                    .derivative = {activation, at}});
  return y;
}

}  // namespace lockstep::ops
