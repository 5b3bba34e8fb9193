// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/convolution.h"

#include <string>

#include "runtime/base/error.h"
#include "runtime/kernels/cuda/alignment.h"
#include "runtime/kernels/cuda/conv_direct.h"
#include "runtime/kernels/cuda/conv_graph.h"
#include "runtime/kernels/cuda/device_state.h"
#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/elementwise.h"
#include "runtime/kernels/geometry/operand_checks.h"
#include "runtime/kernels/reductions.h"
#include "runtime/tensor/cuda/check.h"
#include "runtime/tensor/cuda/stream.h"

namespace lockstep::kernels::cuda {

namespace {

void require_dtype(const Tensor& x) {
  if (x.dtype() == DType::kFloat32 || is_reduced(x.dtype())) return;
  throw ShapeError("conv: a GPU computes float32, float16 and bfloat16, found " + std::string(name_of(x.dtype())));
}

/// Where a pass writes: `out` itself where it has this dtype and takes wide accesses, or else a buffer.
Tensor buffer_for(const Tensor& out, DType dtype, bool accumulate) {
  if (!accumulate && out.dtype() == dtype && is_aligned(out)) return out;
  return Tensor::empty(out.shape(), dtype, out.device());
}

void store_result(const Tensor& buffer, bool accumulate, const Tensor& out) {
  if (buffer.aliases(out)) return;
  if (accumulate) return kElementwise.accumulate(buffer, out);
  kElementwise.cast(buffer, out);
}

void run_direct(Device device, const ConvProblem& problem, const ConvData& data) {
  const gpu::DeviceGuard guard(device);
  conv_direct(problem, data, gpu::current(device));
}

void conv_forward(const ConvGeometry& geometry, const Tensor& x, const Tensor& weight, const Tensor& bias,
                  const Tensor& y) {
  checks::conv_forward(geometry, x, weight, bias, y);
  require_dtype(x);
  if (y.numel() == 0) return;
  if (weight.numel() == 0) {  // no channels: sums of nothing
    kElementwise.fill(y, 0);
    if (bias.defined()) kElementwise.add(y, bias, y);
    return;
  }
  const Tensor input = aligned(x);
  const Tensor kernel = aligned(weight);
  const Tensor shift = aligned(bias);
  const Tensor result = buffer_for(y, y.dtype(), false);
  const auto problem = [&](bool with_bias) {
    return ConvProblem(ConvPass::kForward, geometry, x.shape(), weight.shape(), y.shape(), x.dtype(), y.dtype(),
                       with_bias);
  };
  ConvData data{.first = input.data(), .second = kernel.data(), .result = result.data()};
  const bool biased = bias.defined();
  if (biased) data.bias = shift.data();
  CudnnPlans<ConvProblem, ConvData>& plans = state_of(y.device()).convolutions;
  bool done = plans.run(problem(biased), data);
  if (!done && biased && plans.run(problem(false), {data.first, data.second, nullptr, data.result})) {
    // No engine adds the bias to this one on the way out: a 16-bit result is rounded once more.
    kElementwise.add(result, bias, result);
    done = true;
  }
  if (!done) run_direct(y.device(), problem(biased), data);
  store_result(result, false, y);
}

void conv_backward(const ConvGeometry& geometry, const Tensor& x, const Tensor& weight, const Tensor& dy,
                   const Tensor& dx, const Tensor& dweight, const Tensor& dbias, bool accumulate) {
  checks::conv_backward(geometry, x, weight, dy, dx, dweight, dbias);
  require_dtype(x);
  if (dbias.defined()) kReductions.sum_rows(dy, accumulate, dbias);
  const bool nothing = x.numel() == 0 || weight.numel() == 0 || dy.numel() == 0;
  if (nothing) {
    if (dx.defined()) kElementwise.fill(dx, 0);
    if (dweight.defined() && !accumulate) kElementwise.fill(dweight, 0);
    return;
  }
  const Device device = dy.device();
  CudnnPlans<ConvProblem, ConvData>& plans = state_of(device).convolutions;
  const Tensor slope = aligned(dy);
  const auto problem = [&](ConvPass pass, DType result) {
    return ConvProblem(pass, geometry, x.shape(), weight.shape(), dy.shape(), x.dtype(), result, false);
  };

  if (dx.defined()) {
    const Tensor kernel = aligned(weight);
    const Tensor result = buffer_for(dx, dx.dtype(), false);
    const ConvProblem pass = problem(ConvPass::kData, dx.dtype());
    const ConvData data{.first = slope.data(), .second = kernel.data(), .result = result.data()};
    if (!plans.run(pass, data)) run_direct(device, pass, data);
    store_result(result, false, dx);
  }

  if (!dweight.defined()) return;
  const Tensor input = aligned(x);
  // No engine of cuDNN 9.19 writes float32 from 16-bit operands: the sum is rounded to theirs before it is added or
  // cast.
  const ConvProblem pass = problem(ConvPass::kWeights, x.dtype());
  Tensor result = buffer_for(dweight, x.dtype(), accumulate);
  if (!plans.run(pass, {.first = input.data(), .second = slope.data(), .result = result.data()})) {
    result = buffer_for(dweight, DType::kFloat32, accumulate);
    run_direct(device, pass, {.first = input.data(), .second = slope.data(), .result = result.data()});
  }
  store_result(result, accumulate, dweight);
}

}  // namespace

const Convolution kConvolution{.conv_forward = conv_forward, .conv_backward = conv_backward};

}  // namespace lockstep::kernels::cuda
