// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/conv.h"

#include "amp/autocast/autocast.h"
#include "runtime/autograd/node.h"
#include "runtime/autograd/record_observer.h"
#include "runtime/kernels/assign.h"
#include "runtime/kernels/convolution.h"
#include "runtime/kernels/reductions.h"
#include "runtime/ops/both_backwards.h"
#include "runtime/ops/broadcast.h"
#include "runtime/ops/result.h"

namespace lockstep::ops {

using autograd::BackwardContext;
using autograd::GradTarget;
using autograd::SavedTensor;

namespace {

// <conv(x, w), y> is linear in each of x, w and y. Its gradients by them are a transposed convolution, the gradient of
// a weight and a convolution, each of which is an operation that has the other two as its gradients.

/// Transposed convolution to `shape`, one of those that the convolution maps to x's.
Tensor transposed(const Tensor& x, const Tensor& weight, const Tensor& bias, const kernels::ConvGeometry& geometry,
                  const Shape& shape);
/// The gradient of a convolution by its weight, which has `shape`: x [N, spatial..., C], dy [N, spatial'..., O].
Tensor weight_gradient(const Tensor& x, const Tensor& dy, const kernels::ConvGeometry& geometry, const Shape& shape);

/// The values that the backward passes of a convolution and of a transposed one keep.
struct SavedConv {
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

struct Conv : SavedConv {
  std::vector<Tensor> fused(const Tensor& dy, const BackwardContext& context) const {
    const Tensor& input = x_for(context);
    const Tensor& kernel = weight_for(context);
    // Not a target: the kernel overwrites dx, and an input may be a parameter that holds a gradient.
    const Tensor dx = context.needs(0) ? empty_like(input) : Tensor();
    const GradTarget dweight = context.target(1, kernel);
    const GradTarget dbias = context.target(2, bias.peek());
    const kernels::Convolution& convolution = kernels::Convolution::on(dy.device());
    // One call, so that tensors which the three gradients share are read (and widened) once. Parameters that are
    // used elsewhere too may differ in whether they already hold a gradient.
    if (!dbias.out.defined() || !dweight.out.defined() || dbias.accumulate == dweight.accumulate) {
      const bool accumulate = dweight.out.defined() ? dweight.accumulate : dbias.accumulate;
      convolution.conv_backward(geometry, input, kernel, dy, dx, dweight.out, dbias.out, accumulate);
    } else {
      convolution.conv_backward(geometry, input, kernel, dy, dx, dweight.out, {}, dweight.accumulate);
      kernels::Reductions::on(dy.device()).sum_rows(dy, dbias.accumulate, dbias.out);
    }
    return {dx, dweight.out, dbias.out};
  }

  std::vector<Tensor> recorded(const Tensor& dy, const BackwardContext& context) const {
    std::vector<Tensor> grads(3);
    if (context.needs(0)) grads[0] = transposed(dy, context.saved(weight), {}, geometry, x.peek().shape());
    if (context.needs(1)) grads[1] = weight_gradient(context.saved(x), dy, geometry, weight.peek().shape());
    if (context.needs(2)) grads[2] = sum_to(dy, bias.peek().shape());
    return grads;
  }
};

struct Transposed : SavedConv {
  std::vector<Tensor> fused(const Tensor& dy, const BackwardContext& context) const {
    const Tensor& input = x_for(context);
    const Tensor& kernel = weight_for(context);
    const kernels::Convolution& convolution = kernels::Convolution::on(dy.device());
    const GradTarget dweight = context.target(1, kernel);
    const GradTarget dbias = context.target(2, bias.peek());
    if (dweight.out.defined()) {
      convolution.conv_backward(geometry, dy, kernel, input, {}, dweight.out, {}, dweight.accumulate);
    }
    if (dbias.out.defined()) kernels::Reductions::on(dy.device()).sum_rows(dy, dbias.accumulate, dbias.out);
    const Tensor dx = context.needs(0) ? empty_like(input) : Tensor();
    if (dx.defined()) convolution.conv_forward(geometry, dy, kernel, {}, dx);
    return {dx, dweight.out, dbias.out};
  }

  std::vector<Tensor> recorded(const Tensor& dy, const BackwardContext& context) const {
    std::vector<Tensor> grads(3);
    if (context.needs(0)) grads[0] = conv(dy, context.saved(weight), {}, geometry);
    if (context.needs(1)) grads[1] = weight_gradient(dy, context.saved(x), geometry, weight.peek().shape());
    if (context.needs(2)) grads[2] = sum_to(dy, bias.peek().shape());
    return grads;
  }
};

Tensor transposed(const Tensor& input, const Tensor& weight_in, const Tensor& bias_in,
                  const kernels::ConvGeometry& geometry, const Shape& shape) {
  const Tensor x = amp::autocast(amp::Op::kConvTranspose, input);
  const Tensor weight = amp::autocast(amp::Op::kConvTranspose, weight_in, "the weight");
  const Tensor bias = amp::autocast_if_defined(amp::Op::kConvTranspose, bias_in);
  const Tensor y = Tensor::empty(shape, x.dtype(), x.device());
  // Seen from the convolution, y is its input and x its output.
  kernels::Convolution::on(x.device()).conv_backward(geometry, y, weight, x, y, {}, {}, false);
  if (bias.defined()) kernels::add(y, bias, y);
  autograd::record(
      y, name_of(amp::Op::kConvTranspose), {x, weight, bias},
      both_of(Transposed{{geometry, SavedTensor::in_graph(x), SavedTensor::in_graph(weight), SavedTensor(bias)}}));
  autograd::note_options(y, geometry);
  return y;
}

Tensor weight_gradient(const Tensor& input, const Tensor& gradient, const kernels::ConvGeometry& geometry,
                       const Shape& shape) {
  const Tensor x = amp::autocast(amp::Op::kConvWeightGradient, input);
  const Tensor dy = amp::autocast(amp::Op::kConvWeightGradient, gradient);
  const Tensor dweight = Tensor::empty(shape, x.dtype(), x.device());
  kernels::Convolution::on(x.device()).conv_backward(geometry, x, dweight, dy, {}, dweight, {}, false);
  autograd::record(dweight, name_of(amp::Op::kConvWeightGradient), {x, dy},
                   {.recorded = [geometry, x = SavedTensor::in_graph(x), dy = SavedTensor::in_graph(dy)](
                                    const Tensor& weight, const BackwardContext& context) {
                     std::vector<Tensor> grads(2);
                     if (context.needs(0)) {
                       grads[0] = transposed(context.saved(dy), weight, {}, geometry, x.peek().shape());
                     }
                     if (context.needs(1)) grads[1] = conv(context.saved(x), weight, {}, geometry);
                     return grads;
                   }});
  return dweight;
}

}  // namespace

Tensor conv(const Tensor& input, const Tensor& weight_in, const Tensor& bias_in,
            const kernels::ConvGeometry& geometry) {
  const Tensor x = amp::autocast(amp::Op::kConv, input);
  const Tensor weight = amp::autocast(amp::Op::kConv, weight_in, "the weight");
  const Tensor bias = amp::autocast_if_defined(amp::Op::kConv, bias_in);
  const Tensor y =
      Tensor::empty(kernels::conv_output_shape(x.shape(), weight.shape(), geometry), x.dtype(), x.device());
  kernels::Convolution::on(x.device()).conv_forward(geometry, x, weight, bias, y);
  autograd::record(
      y, name_of(amp::Op::kConv), {x, weight, bias},
      both_of(Conv{{geometry, SavedTensor::in_graph(x), SavedTensor::in_graph(weight), SavedTensor(bias)}}));
  autograd::note_options(y, geometry);
  return y;
}

Tensor conv_transpose(const Tensor& x, const Tensor& weight, const Tensor& bias, const kernels::ConvGeometry& geometry,
                      const std::array<std::int64_t, 3>& output_padding) {
  require_defined(x, name_of(amp::Op::kConvTranspose), "the input");
  require_defined(weight, name_of(amp::Op::kConvTranspose), "the weight");
  return transposed(x, weight, bias, geometry,
                    kernels::conv_transpose_output_shape(x.shape(), weight.shape(), geometry, output_padding));
}

}  // namespace lockstep::ops
