// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/conv.h"

#include "amp/autocast/autocast.h"
#include "runtime/autograd/node.h"
#include "runtime/ops/result.h"

namespace lockstep::ops {

using autograd::BackwardContext;
using autograd::GradTarget;
using autograd::SavedTensor;

namespace {

/// What the backward passes of a convolution and of a transposed one keep.
struct Saved {
  kernels::ConvGeometry geometry;
  SavedTensor x;
  SavedTensor weight;
  SavedTensor bias;

  // Where only the shape is asked for, the value may have been written since.
  const Tensor& x_for(const BackwardContext& context) const { return context.needs(1) ? context.saved(x) : x.peek(); }
  const Tensor& weight_for(const BackwardContext& context) const {
    return context.needs(0) ? context.saved(weight) : weight.peek();
  }
};

struct Backward : Saved {
  std::vector<Tensor> operator()(const Tensor& dy, const BackwardContext& context) const {
    const Tensor& input = x_for(context);
    const Tensor& kernel = weight_for(context);
    // Not a target: the kernel overwrites dx, and an input may be a parameter that holds a gradient.
    const Tensor dx = context.needs(0) ? empty_like(input) : Tensor();
    const GradTarget dweight = context.target(1, kernel);
    const GradTarget dbias = context.target(2, bias.peek());
    const kernels::Backend& backend = kernels::backend(dy.device());
    // One call, so that what the three gradients share is read (and widened) once; parameters that are
    // used elsewhere too may differ in whether they already hold a gradient.
    if (!dbias.out.defined() || !dweight.out.defined() || dbias.accumulate == dweight.accumulate) {
      const bool accumulate = dweight.out.defined() ? dweight.accumulate : dbias.accumulate;
      backend.conv_backward(geometry, input, kernel, dy, dx, dweight.out, dbias.out, accumulate);
    } else {
      backend.conv_backward(geometry, input, kernel, dy, dx, dweight.out, {}, dweight.accumulate);
      backend.sum_rows(dy, dbias.accumulate, dbias.out);
    }
    return {dx, dweight.out, dbias.out};
  }
};

struct TransposeBackward : Saved {
  std::vector<Tensor> operator()(const Tensor& dy, const BackwardContext& context) const {
    const Tensor& input = x_for(context);
    const Tensor& kernel = weight_for(context);
    const kernels::Backend& backend = kernels::backend(dy.device());
    const GradTarget dweight = context.target(1, kernel);
    const GradTarget dbias = context.target(2, bias.peek());
    if (dweight.out.defined()) {
      backend.conv_backward(geometry, dy, kernel, input, {}, dweight.out, {}, dweight.accumulate);
    }
    if (dbias.out.defined()) backend.sum_rows(dy, dbias.accumulate, dbias.out);
    const Tensor dx = context.needs(0) ? empty_like(input) : Tensor();
    if (dx.defined()) backend.conv_forward(geometry, dy, kernel, {}, dx);
    return {dx, dweight.out, dbias.out};
  }
};

}  // namespace

Tensor conv(const Tensor& input, const Tensor& weight_in, const Tensor& bias_in,
            const kernels::ConvGeometry& geometry) {
  const Tensor x = amp::autocast(amp::Op::kConv, input);
  const Tensor weight = amp::autocast(amp::Op::kConv, weight_in);
  const Tensor bias = amp::autocast(amp::Op::kConv, bias_in);
  const Tensor y =
      Tensor::empty(kernels::conv_output_shape(x.shape(), weight.shape(), geometry), x.dtype(), x.device());
  kernels::backend(x.device()).conv_forward(geometry, x, weight, bias, y);
  autograd::record(y, "conv", {x, weight, bias},
                   {.fused = Backward{geometry, SavedTensor(x), SavedTensor(weight), SavedTensor(bias)}});
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
  autograd::record(y, "conv_transpose", {x, weight, bias},
                   {.fused = TransposeBackward{geometry, SavedTensor(x), SavedTensor(weight), SavedTensor(bias)}});
  return y;
}

}  // namespace lockstep::ops
