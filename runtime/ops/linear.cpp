// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/linear.h"

#include "amp/autocast/autocast.h"
#include "runtime/autograd/node.h"
#include "runtime/kernels/backend.h"
#include "runtime/ops/result.h"
#include "runtime/tensor/error.h"

namespace lockstep::ops {

using autograd::BackwardContext;
using autograd::GradTarget;
using autograd::SavedTensor;
using kernels::Activation;
using kernels::Epilogue;

Tensor matmul(const Tensor& first, const Tensor& second) {
  const Tensor a = amp::autocast(amp::Op::kMatmul, first);
  const Tensor b = amp::autocast(amp::Op::kMatmul, second);
  if (a.shape().rank() < 2 || b.shape().rank() != a.shape().rank()) {
    throw ShapeError("matmul of " + describe(a) + " and " + describe(b) + ": both need rank 2, or rank 3");
  }
  const Tensor out = Tensor::empty(a.shape().with(-1, b.shape().back()), a.dtype(), a.device());
  kernels::backend(a.device()).matmul(a, false, b, false, {}, false, out);
  autograd::record(out, "matmul", {a, b},
                   {.fused = [a = SavedTensor(a), b = SavedTensor(b)](const Tensor& dy, const BackwardContext& ctx) {
                     std::vector<Tensor> grads(2);
                     const kernels::Backend& backend = kernels::backend(dy.device());
                     if (ctx.needs(0)) {
                       const GradTarget da = ctx.target(0, a.peek());
                       backend.matmul(dy, false, ctx.saved(b), true, {}, da.accumulate, da.out);
                       grads[0] = da.out;
                     }
                     if (ctx.needs(1)) {
                       const GradTarget db = ctx.target(1, b.peek());
                       backend.matmul(ctx.saved(a), true, dy, false, {}, db.accumulate, db.out);
                       grads[1] = db.out;
                     }
                     return grads;
                   }});
  return out;
}

namespace {

/// What the backward pass of linear keeps. x, y and their gradients as matrices.
struct Linear {
  SavedTensor x;
  SavedTensor weight;
  SavedTensor bias;
  Activation activation;
  SavedTensor at;  ///< of its derivative

  Shape x_rows() const { return {x.peek().shape().rows(), x.peek().shape().back()}; }
  Shape y_rows() const { return {x.peek().shape().rows(), weight.peek().size(0)}; }

  std::vector<Tensor> operator()(const Tensor& grad, const BackwardContext& context) const {
    std::vector<Tensor> grads(3);
    const kernels::Backend& backend = kernels::backend(grad.device());
    Tensor dz = grad;
    if (activation != Activation::kNone && !context.multiplied()) {
      dz = empty_like(grad);
      backend.activate_backward(activation, context.saved(at), grad, dz);
    }
    dz = dz.reshaped(y_rows());
    parameters(backend, dz, context, grads);
    if (context.needs(0)) {
      grads[0] = empty_like(x.peek());
      Epilogue epilogue;
      if (const auto before = context.take_derivative(0)) {
        epilogue.derivative = before->activation;
        epilogue.derivative_at = before->at.peek().reshaped(x_rows());
      }
      backend.matmul(dz, false, context.saved(weight), false, epilogue, false, grads[0].reshaped(x_rows()));
    }
    return grads;
  }

 private:
  void parameters(const kernels::Backend& backend, const Tensor& dz, const BackwardContext& context,
                  std::vector<Tensor>& grads) const {
    const GradTarget dbias = context.needs(2) ? context.target(2, bias.peek()) : GradTarget();
    grads[2] = dbias.out;
    if (!context.needs(1)) {
      if (dbias.out.defined()) backend.sum_rows(dz, dbias.accumulate, dbias.out);
      return;
    }
    const GradTarget dweight = context.target(1, weight.peek());
    Epilogue epilogue;
    epilogue.bias_gradient = dbias.out;
    epilogue.accumulate_bias_gradient = dbias.accumulate;
    backend.matmul(dz, true, context.saved(x).reshaped(x_rows()), false, epilogue, dweight.accumulate, dweight.out);
    grads[1] = dweight.out;
  }
};

}  // namespace

Tensor linear(const Tensor& input, const Tensor& weight_in, const Tensor& bias_in, Activation activation) {
  const Tensor x = amp::autocast(amp::Op::kLinear, input);
  const Tensor weight = amp::autocast(amp::Op::kLinear, weight_in);
  const Tensor bias = amp::autocast(amp::Op::kLinear, bias_in);
  if (x.shape().rank() < 1 || weight.shape().rank() != 2 || x.shape().back() != weight.size(1)) {
    throw ShapeError("linear of " + describe(x) + " with weight " + weight.shape().str() +
                     ": the input's last dimension must be the weight's");
  }
  Linear backward{SavedTensor(x), SavedTensor(weight), SavedTensor(bias), activation, {}};
  const Tensor y = Tensor::empty(x.shape().with(-1, weight.size(0)), x.dtype(), x.device());
  Epilogue epilogue(bias);
  epilogue.activation = activation;
  Tensor at;
  if (derivative_follows_from_output(activation)) {
    at = y;
  } else if (autograd::is_recorded(x) || autograd::is_recorded(weight) || autograd::is_recorded(bias)) {
    at = empty_like(y);
    epilogue.preactivation = at.reshaped(backward.y_rows());
  }
  kernels::backend(x.device())
      .matmul(x.reshaped(backward.x_rows()), false, weight, true, epilogue, false, y.reshaped(backward.y_rows()));
  backward.at = SavedTensor(at);
  const autograd::ActivationDerivative derivative{activation, backward.at};
  autograd::record(y, "linear", {x, weight, bias}, {.fused = std::move(backward), .derivative = derivative});
  return y;
}

}  // namespace lockstep::ops
