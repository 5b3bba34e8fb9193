// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/geometry/check.h"
#include "runtime/kernels/geometry/checks.h"

namespace lockstep::kernels::checks {

namespace {

/// Each of the per-channel tensors is [C] in the dtype of x's statistics.
const Check& per_channel(const Check& check, const Tensor& x, std::string_view name, const Tensor& tensor) {
  return check.shape(name, tensor, {x.shape().back()}).dtype(name, tensor, accumulation_dtype(x.dtype()));
}

}  // namespace

void batch_norm_statistics(const Tensor& x, const Tensor& mean, const Tensor& m2) {
  const Check check("batch_norm_statistics");
  check.floating("x", x).rank_at_least("x", x, 1);
  per_channel(check, x, "mean", mean);
  per_channel(check, x, "m2", m2);
}

void batch_norm_finalize(const Tensor& packed, const Tensor& running, const Tensor& mean, const Tensor& inv_std,
                         const Tensor& count, const Tensor& next_running) {
  const Check check("batch_norm_finalize");
  check.floating("packed", packed).rank_at_least("packed", packed, 2).floating("mean", mean);
  const std::int64_t channels = mean.numel();
  check.shape("packed", packed, {packed.size(0), 2 * channels + 1});
  check.shape("mean", mean, {channels}).dtype("mean", mean, packed.dtype());
  check.like("inv_std", inv_std, mean);
  check.shape("count", count, {}).dtype("count", count, packed.dtype());
  if (!running.defined()) return;
  check.shape("running", running, {2, channels}).dtype("running", running, packed.dtype());
  check.like("next_running", next_running, running);
}

void batch_norm_apply(const Tensor& x, const Tensor& mean, const Tensor& inv_std, const Tensor& gamma,
                      const Tensor& beta, const Tensor& residual, const Tensor& y) {
  const Check check("batch_norm_apply");
  check.floating("x", x).rank_at_least("x", x, 1).like("y", y, x);
  per_channel(check, x, "mean", mean);
  per_channel(check, x, "inv_std", inv_std);
  per_channel(check, x, "gamma", gamma);
  per_channel(check, x, "beta", beta);
  if (residual.defined()) check.like("residual", residual, x);
}

void batch_norm_backward_reduce(const Tensor& x, const Tensor& mean, const Tensor& dy, const Tensor& y, bool relu,
                                const Tensor& sum_dy, const Tensor& sum_dy_xmu) {
  const Check check("batch_norm_backward_reduce");
  check.floating("x", x).rank_at_least("x", x, 1).like("dy", dy, x);
  if (relu) check.like("y", y, x);
  per_channel(check, x, "mean", mean);
  per_channel(check, x, "sum_dy", sum_dy);
  per_channel(check, x, "sum_dy_xmu", sum_dy_xmu);
}

void batch_norm_backward_apply(const Tensor& x, const Tensor& mean, const Tensor& inv_std, const Tensor& gamma,
                               const Tensor& dy, const Tensor& y, bool relu, const Tensor& sum_dy,
                               const Tensor& sum_dy_xmu, const Tensor& count, const Tensor& dx,
                               const Tensor& dresidual) {
  const Check check("batch_norm_backward_apply");
  check.floating("x", x).rank_at_least("x", x, 1).like("dy", dy, x).like("dx", dx, x);
  if (relu) check.like("y", y, x);
  if (dresidual.defined()) check.like("dresidual", dresidual, x);
  per_channel(check, x, "mean", mean);
  per_channel(check, x, "inv_std", inv_std);
  per_channel(check, x, "gamma", gamma);
  if (!count.defined()) return;  // constant statistics need no sums
  per_channel(check, x, "sum_dy", sum_dy);
  per_channel(check, x, "sum_dy_xmu", sum_dy_xmu);
  check.shape("count", count, {}).dtype("count", count, accumulation_dtype(x.dtype()));
}

}  // namespace lockstep::kernels::checks
