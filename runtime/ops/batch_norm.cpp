// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/batch_norm.h"

#include "amp/autocast/autocast.h"
#include "runtime/autograd/cast.h"
#include "runtime/autograd/node.h"
#include "runtime/kernels/backend.h"
#include "runtime/ops/result.h"
#include "runtime/tensor/error.h"

namespace lockstep::ops {

using autograd::BackwardContext;
using autograd::GradTarget;
using autograd::SavedTensor;

namespace {

/// Elements [begin, begin + count) of a vector.
Tensor part(const Tensor& vector, std::int64_t begin, std::int64_t count) { return vector.rows(begin, begin + count); }

struct Statistics {
  Tensor mean;
  Tensor inv_std;
  Tensor count;  ///< undefined where the statistics are constants
};

Statistics statistics_of(const Tensor& x, DType dtype, const Tensor& running, const Tensor& next_running,
                         const BatchNormOptions& options) {
  const kernels::Backend& backend = kernels::backend(x.device());
  const std::int64_t channels = x.shape().back();
  Tensor packed = Tensor::empty({2 * channels + 1}, dtype, x.device());
  backend.batch_norm_statistics(x, part(packed, 0, channels), part(packed, channels, channels));
  backend.fill(part(packed, 2 * channels, 1), static_cast<double>(x.shape().rows()));
  packed = options.reducer ? options.reducer->gather(packed) : packed.reshaped({1, packed.numel()});
  const Statistics statistics{Tensor::empty({channels}, dtype, x.device()),
                              Tensor::empty({channels}, dtype, x.device()), Tensor::empty({}, dtype, x.device())};
  backend.batch_norm_finalize(packed, options.epsilon, options.momentum, running, statistics.mean, statistics.inv_std,
                              statistics.count, next_running);
  return statistics;
}

Statistics statistics_of_running(const Tensor& running, const BatchNormOptions& options) {
  // One share of one row whose variance is the running one.
  const std::int64_t channels = running.size(1);
  const kernels::Backend& backend = kernels::backend(running.device());
  const Tensor packed = Tensor::empty({1, 2 * channels + 1}, running.dtype(), running.device());
  const Tensor flat = packed.reshaped({2 * channels + 1});
  backend.cast(running.reshaped({2 * channels}), part(flat, 0, 2 * channels));
  backend.fill(part(flat, 2 * channels, 1), 1.0);
  const Statistics statistics{Tensor::empty({channels}, running.dtype(), running.device()),
                              Tensor::empty({channels}, running.dtype(), running.device()),
                              {}};
  const Tensor count = Tensor::empty({}, running.dtype(), running.device());
  backend.batch_norm_finalize(packed, options.epsilon, 0.0, {}, statistics.mean, statistics.inv_std, count, {});
  return statistics;
}

/// What the backward pass keeps.
struct Backward {
  SavedTensor x;
  SavedTensor y;  ///< undefined without relu
  SavedTensor gamma;
  Statistics statistics;
  bool relu;
  StatisticsReducer* reducer;

  std::vector<Tensor> operator()(const Tensor& dy, const BackwardContext& context) const {
    const Tensor& input = context.saved(x);
    const Tensor& output = context.saved(y);
    const Tensor& weight = context.saved(gamma);
    const kernels::Backend& backend = kernels::backend(dy.device());
    const std::int64_t channels = weight.numel();
    const Tensor sums = Tensor::empty({2 * channels}, weight.dtype(), dy.device());
    const Tensor sum_dy = part(sums, 0, channels), sum_dy_xmu = part(sums, channels, channels);
    backend.batch_norm_backward_reduce(input, statistics.mean, dy, output, relu, sum_dy, sum_dy_xmu);
    // The parameters' gradients are this rank's share, like every other parameter's: taken before the sums are.
    std::vector<Tensor> grads(4);
    if (context.needs(1)) {
      grads[1] = empty_like(weight);
      backend.multiply(sum_dy_xmu, statistics.inv_std, grads[1]);
    }
    if (context.needs(2)) {
      grads[2] = empty_like(sum_dy);
      backend.cast(sum_dy, grads[2]);
    }
    if (statistics.count.defined() && reducer != nullptr) reducer->sum(sums);
    if (context.needs(3)) grads[3] = empty_like(dy);
    grads[0] = empty_like(input);
    backend.batch_norm_backward_apply(input, statistics.mean, statistics.inv_std, weight, dy, output, relu, sum_dy,
                                      sum_dy_xmu, statistics.count, grads[0], grads[3]);
    return grads;
  }
};

Tensor normalize(const Tensor& x, const Tensor& gamma_in, const Tensor& beta_in, const Tensor& residual_in,
                 const Statistics& statistics, const BatchNormOptions& options) {
  const DType dtype = statistics.mean.dtype();
  const Tensor gamma = autograd::cast(gamma_in, dtype), beta = autograd::cast(beta_in, dtype);
  const Tensor residual = residual_in.defined() ? autograd::cast(residual_in, x.dtype()) : Tensor();
  const bool relu = options.relu;
  const Tensor y = empty_like(x);
  kernels::backend(x.device()).batch_norm_apply(x, statistics.mean, statistics.inv_std, gamma, beta, residual, relu, y);
  autograd::record(y, "batch_norm", {x, gamma, beta, residual},
                   {.fused = Backward{SavedTensor(x), SavedTensor(relu ? y : Tensor()), SavedTensor(gamma), statistics,
                                      relu, options.reducer}});
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
  return normalize(x, gamma, beta, residual, statistics_of_running(running, options), options);
}

}  // namespace lockstep::ops
