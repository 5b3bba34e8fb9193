// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/batch_norm_statistics.h"

#include <utility>

#include "amp/autocast/policy.h"
#include "runtime/autograd/node.h"
#include "runtime/base/error.h"
#include "runtime/kernels/assign.h"
#include "runtime/kernels/batch_norm.h"
#include "runtime/ops/operators.h"
#include "runtime/ops/result.h"

namespace lockstep::ops {

using autograd::BackwardContext;
using autograd::SavedTensor;

namespace {

/// Elements [begin, begin + count) of a vector.
Tensor part(const Tensor& vector, std::int64_t begin, std::int64_t count) {
  return vector.detach_rows(begin, begin + count);
}

Tensor or_zeros(const Tensor& gradient, const Tensor& like) {
  return gradient.defined() ? gradient : Tensor::zeros(like.shape(), like.dtype(), like.device());
}

}  // namespace

namespace {

thread_local KeptStatistics* innermost = nullptr;

Statistics measured(const Tensor& x, DType dtype, const Tensor& running, const Tensor& next_running,
                    const BatchNormOptions& options) {
  const kernels::BatchNormalization& batch_normalization = kernels::BatchNormalization::on(x.device());
  const std::int64_t channels = x.shape().back();
  const Statistics statistics{Tensor::empty({channels}, dtype, x.device()),
                              Tensor::empty({channels}, dtype, x.device()), Tensor::empty({}, dtype, x.device())};
  if (options.reducer == nullptr) {
    batch_normalization.batch_norm_measure(x, options.epsilon, options.momentum, running, statistics.mean,
                                           statistics.inv_std, statistics.count, next_running);
    return statistics;
  }
  Tensor packed = Tensor::empty({2 * channels + 1}, dtype, x.device());
  batch_normalization.batch_norm_statistics(x, part(packed, 0, channels), part(packed, channels, channels));
  kernels::fill(part(packed, 2 * channels, 1), static_cast<double>(x.shape().rows()));
  packed = options.reducer->gather(packed);
  batch_normalization.batch_norm_finalize(packed, options.epsilon, options.momentum, running, statistics.mean,
                                          statistics.inv_std, statistics.count, next_running);
  return statistics;
}

}  // namespace

KeptStatistics::KeptStatistics(Use use, std::vector<Statistics>& list)
    : use_(use), list_(list), outer_(std::exchange(innermost, this)) {}

KeptStatistics::~KeptStatistics() { innermost = outer_; }

Statistics KeptStatistics::next(const std::function<Statistics()>& compute) {
  return innermost == nullptr ? compute() : innermost->here(compute);
}

Statistics KeptStatistics::here(const std::function<Statistics()>& compute) {
  if (use_ == Use::kKeep) {
    // A block within a block that runs again takes what that one kept.
    list_.push_back(outer_ == nullptr ? compute() : outer_->here(compute));
    return list_.back();
  }
  if (at_ < list_.size()) return list_[at_++];
  throw UsageError("batch_norm: a block that runs again for its gradients calls more batch norms than the first time",
                   "A block that is checkpointed does the same each time.");
}

Statistics statistics_of(const Tensor& x, DType dtype, const Tensor& running, const Tensor& next_running,
                         const BatchNormOptions& options) {
  return KeptStatistics::next([&] { return measured(x, dtype, running, next_running, options); });
}

Statistics statistics_of_running(const Tensor& running, const BatchNormOptions& options) {
  require_defined(running, "batch_norm_inference", "running");
  // One share of one row whose variance is the running one.
  const std::int64_t channels = running.size(1);
  const kernels::BatchNormalization& batch_normalization = kernels::BatchNormalization::on(running.device());
  const Tensor packed = Tensor::empty({1, 2 * channels + 1}, running.dtype(), running.device());
  const Tensor flat = packed.detach({2 * channels + 1});
  kernels::cast(running.detach({2 * channels}), part(flat, 0, 2 * channels));
  kernels::fill(part(flat, 2 * channels, 1), 1.0);
  const Statistics statistics{Tensor::empty({channels}, running.dtype(), running.device()),
                              Tensor::empty({channels}, running.dtype(), running.device()),
                              {}};
  const Tensor count = Tensor::empty({}, running.dtype(), running.device());
  batch_normalization.batch_norm_finalize(packed, options.epsilon, 0.0, {}, statistics.mean, statistics.inv_std, count,
                                          {});
  return statistics;
}

Statistics in_graph_of(const Tensor& x, const Statistics& statistics, StatisticsReducer* reducer) {
  const Statistics results{statistics.mean.detach(), statistics.inv_std.detach(), statistics.count};
  // d mean / dx = 1 / count and d inv_std / dx = -inv_std^3 (x - mean) / count, of every row of every rank.
  autograd::record({results.mean, results.inv_std}, name_of(amp::Op::kBatchNormStatistics), {x},
                   {.recorded = [x = SavedTensor::in_graph(x), mean = SavedTensor(results.mean),
                                 inv_std = SavedTensor(results.inv_std), count = results.count,
                                 reducer](const Tensor&, const BackwardContext& context) {
                     const auto [of_mean, of_inv_std] =
                         sum_over_ranks(or_zeros(context.gradients()[0], mean.peek()),
                                        or_zeros(context.gradients()[1], mean.peek()), reducer);
                     const Tensor scale = context.result(inv_std, 1);
                     const Tensor xmu = context.saved(x) - context.result(mean, 0);
                     return std::vector<Tensor>{of_mean / count - xmu * (scale * scale * scale * of_inv_std / count)};
                   }});
  return results;
}

std::array<Tensor, 2> sum_over_ranks(const Tensor& a, const Tensor& b, StatisticsReducer* reducer) {
  if (reducer == nullptr) return {a, b};
  const std::int64_t channels = a.numel();
  const Tensor sums = Tensor::empty({2 * channels}, a.dtype(), a.device());
  const std::array<Tensor, 2> results{part(sums, 0, channels), part(sums, channels, channels)};
  kernels::cast(a, results[0]);
  kernels::cast(b, results[1]);
  reducer->sum(sums);
  autograd::record({results[0], results[1]}, name_of(amp::Op::kSumOverRanks), {a, b},
                   {.recorded = [shape = a.detach(), reducer](const Tensor&, const BackwardContext& context) {
                     const auto [first, second] = sum_over_ranks(or_zeros(context.gradients()[0], shape),
                                                                 or_zeros(context.gradients()[1], shape), reducer);
                     return std::vector<Tensor>{first, second};
                   }});
  return results;
}

}  // namespace lockstep::ops
