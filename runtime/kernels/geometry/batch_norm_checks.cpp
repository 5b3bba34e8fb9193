// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/batch_norm.h"
#include "runtime/kernels/geometry/check.h"
#include "runtime/kernels/geometry/operand_checks.h"

namespace lockstep::kernels::checks {

namespace {

/// Each of the per-channel tensors is [C] in the dtype of x's statistics.
const Check& per_channel(const Check& check, const Tensor& x, std::string_view name, const Tensor& tensor) {
  return check.shape(name, tensor, {x.shape().back()}).dtype(name, tensor, accumulation_dtype(x.dtype()));
}

void masked(const Check& check, const Tensor& x, const BatchNormMask& mask) {
  if (!mask.y.defined()) return;
  check.like("y", mask.y, x);
  if (!mask.beta.defined()) return;
  per_channel(check, x, "inv_std", mask.inv_std);
  per_channel(check, x, "gamma", mask.gamma);
  per_channel(check, x, "beta", mask.beta);
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

void batch_norm_measure(const Tensor& x, const Tensor& running, const Tensor& mean, const Tensor& inv_std,
                        const Tensor& count, const Tensor& next_running) {
  const Check check("batch_norm_measure");
  check.floating("x", x).rank_at_least("x", x, 1);
  per_channel(check, x, "mean", mean);
  check.like("inv_std", inv_std, mean);
  check.shape("count", count, {}).dtype("count", count, mean.dtype());
  if (!running.defined()) return;
  check.shape("running", running, {2, mean.numel()}).dtype("running", running, mean.dtype());
  check.like("next_running", next_running, running);
}

void batch_norm_backward_reduce(const Tensor& x, const Tensor& mean, const BatchNormGradient& gradient,
                                const BatchNormMask& mask, const Tensor& sum_dy, const Tensor& sum_dy_xmu,
                                const BatchNormParameterGradients& gradients) {
  const Check check("batch_norm_backward_reduce");
  check.floating("x", x).rank_at_least("x", x, 1).like("dy", gradient.dy, x);
  if (gradient.addend.defined()) check.like("addend", gradient.addend, x);
  if (gradient.addend.defined() || gradient.masked.defined()) check.like("masked", gradient.masked, x);
  masked(check, x, mask);
  per_channel(check, x, "mean", mean);
  per_channel(check, x, "sum_dy", sum_dy);
  per_channel(check, x, "sum_dy_xmu", sum_dy_xmu);
  if (gradients.dgamma.defined()) {
    per_channel(check, x, "inv_std", gradients.inv_std);
    check.shape("dgamma", gradients.dgamma, mean.shape()).floating("dgamma", gradients.dgamma);
  }
  if (gradients.dbeta.defined()) {
    check.shape("dbeta", gradients.dbeta, mean.shape()).floating("dbeta", gradients.dbeta);
  }
}

void batch_norm_backward_apply(const Tensor& x, const Tensor& mean, const Tensor& inv_std, const Tensor& gamma,
                               const Tensor& dy, const BatchNormMask& mask, const Tensor& sum_dy,
                               const Tensor& sum_dy_xmu, const Tensor& count, const Tensor& dx) {
  const Check check("batch_norm_backward_apply");
  check.floating("x", x).rank_at_least("x", x, 1).like("dy", dy, x).like("dx", dx, x);
  masked(check, x, mask);
  per_channel(check, x, "mean", mean);
  per_channel(check, x, "inv_std", inv_std);
  per_channel(check, x, "gamma", gamma);
  if (!count.defined()) return;  // constant statistics need no sums
  per_channel(check, x, "sum_dy", sum_dy);
  per_channel(check, x, "sum_dy_xmu", sum_dy_xmu);
  check.shape("count", count, {}).dtype("count", count, accumulation_dtype(x.dtype()));
}

}  // namespace lockstep::kernels::checks
