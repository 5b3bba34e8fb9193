// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/losses.h"

#include <algorithm>

#include "amp/autocast/autocast.h"
#include "runtime/autograd/cast.h"
#include "runtime/autograd/node.h"
#include "runtime/kernels/backend.h"
#include "runtime/ops/result.h"
#include "runtime/tensor/error.h"

namespace lockstep::ops {

using autograd::SavedTensor;

namespace {

DType loss_dtype(const Tensor& x) { return x.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32; }

double weight_of(const LossOptions& options, std::int64_t samples, double elements_per_sample) {
  const double divisor =
      options.divisor > 0 ? options.divisor : static_cast<double>(std::max<std::int64_t>(samples, 1));
  return 1.0 / (divisor * elements_per_sample);
}

}  // namespace

Tensor cross_entropy(const Tensor& input, const Tensor& targets, const LossOptions& options) {
  // The kernel reads 16-bit logits exactly and computes in float32: a cast to that would be a copy for nothing.
  const bool kernel_widens = amp::dtype_for(amp::Op::kCrossEntropy, input) == DType::kFloat32;
  const Tensor logits = kernel_widens ? input : amp::autocast(amp::Op::kCrossEntropy, input);
  const std::int64_t rows = logits.shape().rows();
  const double weight = weight_of(options, rows, 1.0);
  const Tensor x = logits.detach().reshaped({rows, logits.shape().back()});
  if (targets.numel() != rows) {
    throw ShapeError("cross_entropy of " + describe(logits) + " needs " + std::to_string(rows) + " targets, not " +
                     describe(targets));
  }
  const Tensor classes = targets.reshaped({rows});
  const Tensor loss = Tensor::empty({}, loss_dtype(x), x.device());
  const Tensor log_sum_exp = Tensor::empty({rows}, loss_dtype(x), x.device());
  const double smoothing = options.label_smoothing;
  kernels::backend(x.device()).cross_entropy(x, classes, smoothing, weight, loss, log_sum_exp);
  autograd::record(loss, "cross_entropy", {logits},
                   {.fused = [x = SavedTensor(x), classes = SavedTensor(classes), smoothing, weight, log_sum_exp,
                              shape = logits.shape()](const Tensor& dloss, const autograd::BackwardContext& context) {
                     const Tensor dx = empty_like(x.peek());
                     kernels::backend(dx.device())
                         .cross_entropy_backward(context.saved(x), context.saved(classes), smoothing, weight,
                                                 log_sum_exp, dloss, dx);
                     return std::vector<Tensor>{dx.reshaped(shape)};
                   }});
  return loss;
}

Tensor mse(const Tensor& input, const Tensor& target_in, const LossOptions& options) {
  // Differences of 16-bit values need more than their precision: float32 even outside autocast.
  const Tensor in = amp::autocast(amp::Op::kMse, input);
  const Tensor x = is_reduced(in.dtype()) ? autograd::cast(in, DType::kFloat32) : in;
  const Tensor target = autograd::cast(amp::autocast(amp::Op::kMse, target_in), x.dtype());
  if (x.shape() != target.shape()) throw ShapeError("mse of " + describe(x) + " and " + describe(target));
  const std::int64_t samples = x.shape().rank() == 0 ? 1 : x.size(0);
  double elements = 1;
  for (int d = 1; d < x.shape().rank(); ++d) elements *= static_cast<double>(x.size(d));
  const double weight = weight_of(options, samples, std::max(elements, 1.0));
  const Tensor loss = Tensor::empty({}, loss_dtype(x), x.device());
  kernels::backend(x.device()).mse(x, target, weight, loss);
  autograd::record(loss, "mse", {x, target},
                   {.fused = [x = SavedTensor(x), target = SavedTensor(target), weight](
                                 const Tensor& dloss, const autograd::BackwardContext& context) {
                     std::vector<Tensor> grads(2);
                     for (std::size_t i = 0; i < 2; ++i) {
                       if (!context.needs(i)) continue;
                       const Tensor& from = context.saved(i == 0 ? x : target);
                       const Tensor& to = context.saved(i == 0 ? target : x);
                       grads[i] = empty_like(from);
                       kernels::backend(from.device()).mse_backward(from, to, weight, dloss, grads[i]);
                     }
                     return grads;
                   }});
  return loss;
}

}  // namespace lockstep::ops
