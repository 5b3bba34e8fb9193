// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/linear.h"

#include "amp/autocast/autocast.h"
#include "runtime/autograd/node.h"
#include "runtime/autograd/record_observer.h"
#include "runtime/base/error.h"
#include "runtime/kernels/matmul.h"
#include "runtime/kernels/pointwise.h"
#include "runtime/kernels/reductions.h"
#include "runtime/ops/both_backwards.h"
#include "runtime/ops/broadcast.h"
#include "runtime/ops/operation_options.h"
#include "runtime/ops/result.h"
#include "runtime/ops/shape.h"
#include "runtime/ops/unary.h"

namespace lockstep::ops {

using autograd::BackwardContext;
using autograd::GradTarget;
using autograd::SavedTensor;
using kernels::Activation;
using kernels::Epilogue;

namespace {

/// y = op(a) op(b), and what its backward pass keeps.
struct Product {
  SavedTensor a;
  bool transpose_a;
  SavedTensor b;
  bool transpose_b;

  std::vector<Tensor> fused(const Tensor& dy, const BackwardContext& context) const {
    const kernels::MatrixProducts& matrix_products = kernels::MatrixProducts::on(dy.device());
    std::vector<Tensor> grads(2);
    if (context.needs(0)) {
      const GradTarget da = context.target(0, a.peek());
      const Tensor& other = context.saved(b);
      if (transpose_a) {
        matrix_products.matmul(other, transpose_b, dy, true, {}, da.accumulate, da.out);
      } else {
        matrix_products.matmul(dy, false, other, !transpose_b, {}, da.accumulate, da.out);
      }
      grads[0] = da.out;
    }
    if (context.needs(1)) {
      const GradTarget db = context.target(1, b.peek());
      const Tensor& other = context.saved(a);
      if (transpose_b) {
        matrix_products.matmul(dy, true, other, transpose_a, {}, db.accumulate, db.out);
      } else {
        matrix_products.matmul(other, !transpose_a, dy, false, {}, db.accumulate, db.out);
      }
      grads[1] = db.out;
    }
    return grads;
  }

  std::vector<Tensor> recorded(const Tensor& dy, const BackwardContext& context) const {
    std::vector<Tensor> grads(2);
    if (context.needs(0)) {
      const Tensor& other = context.saved(b);
      grads[0] = transpose_a ? matmul(other, transpose_b, dy, true) : matmul(dy, false, other, !transpose_b);
    }
    if (context.needs(1)) {
      const Tensor& other = context.saved(a);
      grads[1] = transpose_b ? matmul(dy, true, other, transpose_a) : matmul(other, !transpose_a, dy, false);
    }
    return grads;
  }
};

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) { return matmul(a, false, b, false); }

Tensor matmul(const Tensor& first, bool transpose_a, const Tensor& second, bool transpose_b) {
  const Tensor a = amp::autocast(amp::Op::kMatmul, first, "the first operand");
  const Tensor b = amp::autocast(amp::Op::kMatmul, second, "the second operand");
  if (a.shape().rank() < 2 || b.shape().rank() != a.shape().rank()) {
    throw ShapeError("matmul of " + describe(a) + " and " + describe(b) + ": both need rank 2, or rank 3");
  }
  const Shape shape = a.shape().with(-2, a.size(transpose_a ? -1 : -2)).with(-1, b.size(transpose_b ? -2 : -1));
  const Tensor out = Tensor::empty(shape, a.dtype(), a.device());
  kernels::MatrixProducts::on(a.device()).matmul(a, transpose_a, b, transpose_b, {}, false, out);
  autograd::record(out, "matmul", {a, b},
                   both_of(Product{SavedTensor::in_graph(a), transpose_a, SavedTensor::in_graph(b), transpose_b}));
  autograd::note_options(out, MatmulOptions{transpose_a, transpose_b});
  return out;
}

namespace {

/// The values that the backward pass of linear keeps. It takes x, y and their gradients as matrices.
struct Linear {
  SavedTensor x;
  SavedTensor weight;
  SavedTensor bias;
  Activation activation;
  SavedTensor at;  ///< of the activation's derivative

  Shape x_rows() const { return {x.peek().shape().rows(), x.peek().shape().back()}; }
  Shape y_rows() const { return {x.peek().shape().rows(), weight.peek().size(0)}; }

  std::vector<Tensor> fused(const Tensor& dy, const BackwardContext& context) const {
    std::vector<Tensor> grads(3);
    Tensor dz = dy;
    if (activation != Activation::kNone && !context.multiplied()) {
      dz = empty_like(dy);
      kernels::Pointwise::on(dy.device()).activate_backward(activation, context.saved(at), dy, dz);
    }
    dz = dz.detach(y_rows());
    // The gradient of x comes first: the rest of the backward pass waits for it.
    if (context.needs(0)) {
      grads[0] = empty_like(x.peek());
      Epilogue epilogue;
      if (const auto before = context.take_derivative(0)) {
        epilogue.derivative = before->activation;
        epilogue.derivative_at = before->at.peek().detach(x_rows());
      }
      kernels::MatrixProducts::on(dz.device())
          .matmul(dz, false, context.saved(weight), false, epilogue, false, grads[0].detach(x_rows()));
    }
    parameters(dz, context, grads);
    return grads;
  }

  std::vector<Tensor> recorded(const Tensor& dy, const BackwardContext& context) const {
    std::vector<Tensor> grads(3);
    const Tensor dz = reshape(recorded_dz(dy, context), y_rows());
    if (context.needs(0)) {
      grads[0] = reshape(matmul(dz, context.saved(weight)), x.peek().shape());
    }
    if (context.needs(1)) grads[1] = matmul(dz, true, reshape(context.saved(x), x_rows()), false);
    if (context.needs(2)) grads[2] = sum_to(dz, bias.peek().shape());
    return grads;
  }

 private:
  void parameters(const Tensor& dz, const BackwardContext& context, std::vector<Tensor>& grads) const {
    const GradTarget dbias = context.needs(2) ? context.target(2, bias.peek()) : GradTarget();
    grads[2] = dbias.out;
    if (!context.needs(1)) {
      if (dbias.out.defined()) kernels::Reductions::on(dz.device()).sum_rows(dz, dbias.accumulate, dbias.out);
      return;
    }
    const GradTarget dweight = context.target(1, weight.peek());
    Epilogue epilogue;
    epilogue.bias_gradient = dbias.out;
    epilogue.accumulate_bias_gradient = dbias.accumulate;
    kernels::MatrixProducts::on(dz.device())
        .matmul(dz, true, context.saved(x).detach(x_rows()), false, epilogue, dweight.accumulate, dweight.out);
    grads[1] = dweight.out;
  }

  /// Where the derivative needs z, it is computed again, so that it has a place in the graph.
  Tensor recorded_dz(const Tensor& dy, const BackwardContext& context) const {
    if (activation == Activation::kNone) return dy;
    const Tensor from = derivative_follows_from_output(activation)
                            ? context.result(at)
                            : linear(context.saved(x), context.saved(weight), context.saved(bias));
    return activation_gradient(activation, from, dy);
  }
};

}  // namespace

Tensor linear(const Tensor& input, const Tensor& weight_in, const Tensor& bias_in, Activation activation) {
  const Tensor x = amp::autocast(amp::Op::kLinear, input);
  const Tensor weight = amp::autocast(amp::Op::kLinear, weight_in, "the weight");
  const Tensor bias = amp::autocast_if_defined(amp::Op::kLinear, bias_in);
  if (x.shape().rank() < 1 || weight.shape().rank() != 2 || x.shape().back() != weight.size(1)) {
    throw ShapeError("linear of " + describe(x) + " with weight " + weight.shape().str() +
                     ": the input's last dimension must be the weight's");
  }
  Linear backward{SavedTensor::in_graph(x), SavedTensor::in_graph(weight), SavedTensor::in_graph(bias), activation, {}};
  const Tensor y = Tensor::empty(x.shape().with(-1, weight.size(0)), x.dtype(), x.device());
  Epilogue epilogue(bias);
  epilogue.activation = activation;
  Tensor at;
  if (derivative_follows_from_output(activation)) {
    at = y;
  } else if (autograd::is_recorded(x) || autograd::is_recorded(weight) || autograd::is_recorded(bias)) {
    at = empty_like(y);
    epilogue.preactivation = at.detach(backward.y_rows());
  }
  kernels::MatrixProducts::on(x.device())
      .matmul(x.detach(backward.x_rows()), false, weight, true, epilogue, false, y.detach(backward.y_rows()));
  backward.at = SavedTensor(at);
  const autograd::ActivationDerivative derivative{activation, backward.at};
  autograd::record(y, "linear", {x, weight, bias}, both_of(std::move(backward), derivative));
  autograd::note_options(y, activation);
  return y;
}

}  // namespace lockstep::ops
