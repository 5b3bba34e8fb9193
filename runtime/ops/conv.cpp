// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/conv.h"

#include "amp/autocast/autocast.h"
#include "runtime/autograd/node.h"
#include "runtime/ops/result.h"

namespace lockstep::ops {

using autograd::BackwardContext;
using autograd::GradTarget;

Tensor conv(const Tensor& input, const Tensor& weight_in, const Tensor& bias_in,
            const kernels::ConvGeometry& geometry) {
  const Tensor x = amp::autocast(amp::Op::kConv, input);
  const Tensor weight = amp::autocast(amp::Op::kConv, weight_in);
  const Tensor bias = amp::autocast(amp::Op::kConv, bias_in);
  const Tensor y =
      Tensor::empty(kernels::conv_output_shape(x.shape(), weight.shape(), geometry), x.dtype(), x.device());
  kernels::backend(x.device()).conv_forward(geometry, x, weight, bias, y);
  autograd::record(
      y, "conv", {x, weight, bias},
      [geometry, x = x.detach(), weight = weight.detach(), bias = bias.defined() ? bias.detach() : Tensor()](
          const Tensor& dy, const BackwardContext& context) {
        // Not a target: the kernel overwrites dx, and an input may be a parameter that holds a gradient.
        const Tensor dx = context.needs(0) ? empty_like(x) : Tensor();
        const GradTarget dweight = context.target(1, weight);
        const GradTarget dbias = context.target(2, bias);
        kernels::Backend& backend = kernels::backend(dy.device());
        // One call, so that what the three gradients share is read (and widened) once; parameters that are
        // used elsewhere too may differ in whether they already hold a gradient.
        if (!dbias.out.defined() || !dweight.out.defined() || dbias.accumulate == dweight.accumulate) {
          const bool accumulate = dweight.out.defined() ? dweight.accumulate : dbias.accumulate;
          backend.conv_backward(geometry, x, weight, dy, dx, dweight.out, dbias.out, accumulate);
        } else {
          backend.conv_backward(geometry, x, weight, dy, dx, dweight.out, {}, dweight.accumulate);
          backend.sum_rows(dy, dbias.accumulate, dbias.out);
        }
        return std::vector<Tensor>{dx, dweight.out, dbias.out};
      });
  return y;
}

Tensor conv_transpose(const Tensor& input, const Tensor& weight_in, const Tensor& bias_in,
                      const kernels::ConvGeometry& geometry, const std::array<std::int64_t, 3>& output_padding) {
  const Tensor x = amp::autocast(amp::Op::kConvTranspose, input);
  const Tensor weight = amp::autocast(amp::Op::kConvTranspose, weight_in);
  const Tensor bias = amp::autocast(amp::Op::kConvTranspose, bias_in);
  const Shape shape = kernels::conv_transpose_output_shape(x.shape(), weight.shape(), geometry, output_padding);
  const Tensor y = Tensor::empty(shape, x.dtype(), x.device());
  // Seen from the convolution, y is its input and x its output.
  kernels::backend(x.device()).conv_backward(geometry, y, weight, x, y, {}, {}, false);
  if (bias.defined()) kernels::backend(x.device()).add(y, bias, y);
  autograd::record(
      y, "conv_transpose", {x, weight, bias},
      [geometry, x = x.detach(), weight = weight.detach(), bias = bias.defined() ? bias.detach() : Tensor()](
          const Tensor& dy, const BackwardContext& context) {
        kernels::Backend& backend = kernels::backend(dy.device());
        const GradTarget dweight = context.target(1, weight);
        const GradTarget dbias = context.target(2, bias);
        if (dweight.out.defined()) {
          backend.conv_backward(geometry, dy, weight, x, {}, dweight.out, {}, dweight.accumulate);
        }
        if (dbias.out.defined()) backend.sum_rows(dy, dbias.accumulate, dbias.out);
        const Tensor dx = context.needs(0) ? empty_like(x) : Tensor();
        if (dx.defined()) backend.conv_forward(geometry, dy, weight, {}, dx);
        return std::vector<Tensor>{dx, dweight.out, dbias.out};
      });
  return y;
}

}  // namespace lockstep::ops
