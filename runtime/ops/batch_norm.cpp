// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/batch_norm.h"

#include <utility>

#include "amp/autocast/autocast.h"
#include "runtime/autograd/cast.h"
#include "runtime/autograd/node.h"
#include "runtime/autograd/record_observer.h"
#include "runtime/kernels/batch_norm.h"
#include "runtime/ops/batch_norm_statistics.h"
#include "runtime/ops/both_backwards.h"
#include "runtime/ops/broadcast.h"
#include "runtime/ops/operation_options.h"
#include "runtime/ops/operators.h"
#include "runtime/ops/result.h"
#include "runtime/ops/unary.h"

namespace lockstep::ops {

using autograd::BackwardContext;
using autograd::GradTarget;
using autograd::SavedTensor;

namespace {

/// The values that the backward pass keeps.
struct Normalization {
  SavedTensor x;
  SavedTensor y;  ///< undefined without relu
  SavedTensor gamma;
  SavedTensor beta;  ///< where y follows from x: with relu and without a residual
  Statistics statistics;
  bool relu;
  StatisticsReducer* reducer;

  std::vector<Tensor> fused(const Tensor&, const BackwardContext& context) const {
    const Tensor& input = context.saved(x);
    const Tensor& weight = context.saved(gamma);
    const Device device = input.device();
    kernels::BatchNormMask mask{.y = context.saved(y)};
    if (beta.peek().defined()) {
      mask.inv_std = statistics.inv_std;
      mask.gamma = weight;
      mask.beta = context.saved(beta);
    }
    auto [dy, addend] = context.take_gradient();
    kernels::BatchNormGradient gradient{.dy = std::move(dy), .addend = std::move(addend)};
    // dy' is written where it is a sum, or masked and needed by the residual. The second pass then reads it too.
    if (gradient.addend.defined() || (context.needs(3) && mask.y.defined())) gradient.masked = empty_like(input);
    const kernels::BatchNormalization& batch_normalization = kernels::BatchNormalization::on(device);
    const std::int64_t channels = weight.numel();
    const Tensor sums = Tensor::empty({2 * channels}, weight.dtype(), device);
    const Tensor sum_dy = sums.detach_rows(0, channels), sum_dy_xmu = sums.detach_rows(channels, 2 * channels);
    // The parameters' gradients are this rank's share, like every other parameter's: taken before the sums are.
    const GradTarget dgamma = context.target(1, weight, autograd::TargetDType::kAny);
    const GradTarget dbeta = context.target(2, weight, autograd::TargetDType::kAny);
    batch_normalization.batch_norm_backward_reduce(input, statistics.mean, gradient, mask, sum_dy, sum_dy_xmu,
                                                   {.inv_std = statistics.inv_std,
                                                    .dgamma = dgamma.out,
                                                    .accumulate_dgamma = dgamma.accumulate,
                                                    .dbeta = dbeta.out,
                                                    .accumulate_dbeta = dbeta.accumulate});
    std::vector<Tensor> grads{{}, dgamma.out, dbeta.out, {}};
    if (statistics.count.defined() && reducer != nullptr) reducer->sum(sums);
    if (gradient.masked.defined()) {
      gradient = {.dy = gradient.masked};  // the others' memory serves for dx
      mask = {};
    }
    grads[0] = empty_like(input);
    batch_normalization.batch_norm_backward_apply(input, statistics.mean, statistics.inv_std, weight, gradient.dy, mask,
                                                  sum_dy, sum_dy_xmu, statistics.count, grads[0]);
    if (context.needs(3)) grads[3] = gradient.dy;
    return grads;
  }

  /// The formulas of kernels::BatchNormalization, in the statistics' dtype.
  std::vector<Tensor> recorded(const Tensor& dy_in, const BackwardContext& context) const {
    const bool training = statistics.count.defined();
    const Tensor input = autograd::cast(context.saved(x), statistics.mean.dtype());
    const Tensor masked = relu ? activation_gradient(kernels::Activation::kRelu, context.saved(y), dy_in) : dy_in;
    const Tensor dy = autograd::cast(masked, statistics.mean.dtype());
    const auto [mean, inv_std, count] = training ? in_graph_of(input, statistics, reducer) : statistics;
    const Tensor xmu = input - mean;
    const Tensor sum_dy = sum_to(dy, mean.shape()), sum_dy_xmu = sum_to(dy * xmu, mean.shape());
    Tensor dx = dy;
    if (training) {
      const auto [all_dy, all_dy_xmu] = sum_over_ranks(sum_dy, sum_dy_xmu, reducer);
      dx = dy - all_dy / count - xmu * (inv_std * inv_std * all_dy_xmu / count);
    }
    return {dx * (context.saved(gamma) * inv_std), sum_dy_xmu * inv_std, sum_dy, masked};
  }
};

Tensor normalize(const Tensor& x, const Tensor& gamma_in, const Tensor& beta_in, const Tensor& residual_in,
                 const Statistics& statistics, const BatchNormOptions& options) {
  require_defined(gamma_in, name_of(amp::Op::kBatchNorm), "gamma");
  require_defined(beta_in, name_of(amp::Op::kBatchNorm), "beta");
  const DType dtype = statistics.mean.dtype();
  const Tensor gamma = autograd::cast(gamma_in, dtype), beta = autograd::cast(beta_in, dtype);
  const Tensor residual = residual_in.defined() ? autograd::cast(residual_in, x.dtype()) : Tensor();
  const bool relu = options.relu;
  const Tensor y = empty_like(x);
  kernels::BatchNormalization::on(x.device())
      .batch_norm_apply(x, statistics.mean, statistics.inv_std, gamma, beta, residual, relu, y);
  autograd::Backward backward = both_of(
      Normalization{SavedTensor::in_graph(x), SavedTensor(relu ? y : Tensor()), SavedTensor::in_graph(gamma),
                    SavedTensor(relu && !residual.defined() ? beta : Tensor()), statistics, relu, options.reducer});
  backward.adds = true;
  autograd::record(y, name_of(amp::Op::kBatchNorm), {x, gamma, beta, residual}, std::move(backward));
  return y;
}

}  // namespace

Tensor batch_norm(const Tensor& input, const Tensor& gamma, const Tensor& beta, const Tensor& residual,
                  const Tensor& running, const Tensor& next_running, const BatchNormOptions& options) {
  const Tensor x = amp::autocast(amp::Op::kBatchNorm, input);
  const DType dtype = x.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  return normalize(x, gamma, beta, residual, statistics_of(x, dtype, running, next_running, options), options);
}

Tensor batch_norm_inference(const Tensor& input, const Tensor& gamma, const Tensor& beta, const Tensor& residual,
                            const Tensor& running, const BatchNormOptions& options) {
  const Tensor x = amp::autocast(amp::Op::kBatchNorm, input);
  const Tensor y = normalize(x, gamma, beta, residual, statistics_of_running(running, options), options);
  autograd::note_options(y, InferenceNormOptions{options.epsilon, options.relu}, running);
  return y;
}

}  // namespace lockstep::ops
