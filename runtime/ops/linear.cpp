// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/linear.h"

#include "amp/autocast/autocast.h"
#include "runtime/autograd/node.h"
#include "runtime/kernels/backend.h"
#include "runtime/tensor/error.h"

namespace lockstep::ops {

using autograd::BackwardContext;
using autograd::GradTarget;

Tensor matmul(const Tensor& first, const Tensor& second) {
  const Tensor a = amp::autocast(amp::Op::kMatmul, first);
  const Tensor b = amp::autocast(amp::Op::kMatmul, second);
  if (a.shape().rank() < 2 || b.shape().rank() != a.shape().rank()) {
    throw ShapeError("matmul of " + describe(a) + " and " + describe(b) + ": both need rank 2, or rank 3");
  }
  const Tensor out = Tensor::empty(a.shape().with(-1, b.shape().back()), a.dtype(), a.device());
  kernels::backend(a.device()).matmul(a, false, b, false, {}, false, out);
  autograd::record(out, "matmul", {a, b},
                   [a = a.detach(), b = b.detach()](const Tensor& dy, const BackwardContext& ctx) {
                     std::vector<Tensor> grads(2);
                     kernels::Backend& backend = kernels::backend(dy.device());
                     if (ctx.needs(0)) {
                       const GradTarget da = ctx.target(0, a);
                       backend.matmul(dy, false, b, true, {}, da.accumulate, da.out);
                       grads[0] = da.out;
                     }
                     if (ctx.needs(1)) {
                       const GradTarget db = ctx.target(1, b);
                       backend.matmul(a, true, dy, false, {}, db.accumulate, db.out);
                       grads[1] = db.out;
                     }
                     return grads;
                   });
  return out;
}

Tensor linear(const Tensor& input, const Tensor& weight_in, const Tensor& bias_in) {
  const Tensor x = amp::autocast(amp::Op::kLinear, input);
  const Tensor weight = amp::autocast(amp::Op::kLinear, weight_in);
  const Tensor bias = amp::autocast(amp::Op::kLinear, bias_in);
  if (x.shape().rank() < 1 || weight.shape().rank() != 2 || x.shape().back() != weight.size(1)) {
    throw ShapeError("linear of " + describe(x) + " with weight " + weight.shape().str() +
                     ": the input's last dimension must be the weight's");
  }
  const Shape rows{x.shape().rows(), x.shape().back()};
  const Shape out_rows{rows[0], weight.size(0)};
  const Tensor y = Tensor::empty(x.shape().with(-1, weight.size(0)), x.dtype(), x.device());
  kernels::backend(x.device()).matmul(x.reshaped(rows), false, weight, true, bias, false, y.reshaped(out_rows));
  autograd::record(y, "linear", {x, weight, bias},
                   [x = x.detach(), weight = weight.detach(), bias = bias.defined() ? bias.detach() : Tensor(), rows,
                    out_rows](const Tensor& grad, const BackwardContext& context) {
                     std::vector<Tensor> grads(3);
                     kernels::Backend& backend = kernels::backend(grad.device());
                     const Tensor dy = grad.reshaped(out_rows);
                     if (context.needs(1)) {
                       const GradTarget dweight = context.target(1, weight);
                       backend.matmul(dy, true, x.reshaped(rows), false, {}, dweight.accumulate, dweight.out);
                       grads[1] = dweight.out;
                     }
                     if (context.needs(2)) {
                       const GradTarget dbias = context.target(2, bias);
                       backend.sum_rows(dy, dbias.accumulate, dbias.out);
                       grads[2] = dbias.out;
                     }
                     if (context.needs(0)) {
                       grads[0] = Tensor::empty(x.shape(), x.dtype(), x.device());
                       backend.matmul(dy, false, weight, false, {}, false, grads[0].reshaped(rows));
                     }
                     return grads;
                   });
  return y;
}

}  // namespace lockstep::ops
