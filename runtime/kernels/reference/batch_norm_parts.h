// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/batch_norm.h"
#include "runtime/kernels/elementwise.h"

// Parts of batch normalisation that a CPU computes by calls of other kernels. A GPU computes each within one kernel.

namespace lockstep::kernels::reference {

inline void measure_in_parts(const BatchNormalization& norm, const Elementwise& elementwise, const Tensor& x,
                             double epsilon, double momentum, const Tensor& running, const Tensor& mean,
                             const Tensor& inv_std, const Tensor& count, const Tensor& next_running) {
  const std::int64_t channels = mean.numel();
  const Tensor packed = Tensor::empty({1, 2 * channels + 1}, mean.dtype());
  const Tensor share = packed.detach({packed.numel()});
  norm.batch_norm_statistics(x, share.detach_rows(0, channels), share.detach_rows(channels, 2 * channels));
  elementwise.fill(share.detach_rows(2 * channels, 2 * channels + 1), static_cast<double>(x.shape().rows()));
  norm.batch_norm_finalize(packed, epsilon, momentum, running, mean, inv_std, count, next_running);
}

inline void write_parameter_gradients(const Elementwise& elementwise, const Tensor& sum_dy, const Tensor& sum_dy_xmu,
                                      const BatchNormParameterGradients& gradients) {
  const auto put = [&](const Tensor& gradient, bool accumulate, const Tensor& out) {
    accumulate ? elementwise.accumulate(gradient, out) : elementwise.cast(gradient, out);
  };
  if (gradients.dgamma.defined()) {
    const Tensor dgamma = Tensor::empty(sum_dy_xmu.shape(), sum_dy_xmu.dtype());
    elementwise.multiply(sum_dy_xmu, gradients.inv_std, dgamma);
    put(dgamma, gradients.accumulate_dgamma, gradients.dgamma);
  }
  if (gradients.dbeta.defined()) put(sum_dy, gradients.accumulate_dbeta, gradients.dbeta);
}

}  // namespace lockstep::kernels::reference
