// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "runtime/kernels/geometry/operand_checks.h"
#include "runtime/kernels/reference/batch_norm_parts.h"
#include "runtime/kernels/reference/families.h"
#include "runtime/kernels/reference/values.h"

namespace lockstep::kernels::reference {

namespace {

/// dy where the mask lets it through.
Values masked(const Tensor& dy, const BatchNormMask& mask) {
  Values gradient = load(dy);
  if (mask.y.defined()) {
    const Values output = load(mask.y);
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = output[i] > 0 ? gradient[i] : 0;
  }
  return gradient;
}

/// Masks a gradient that may be a sum, and writes the result to gradient.masked where that is defined.
Values masked(const BatchNormGradient& gradient, const BatchNormMask& mask) {
  const auto& [dy, addend, out] = gradient;
  if (addend.defined()) kElementwise.add(dy, addend, out);
  Values values = masked(addend.defined() ? out : dy, mask);
  if (out.defined()) store(values, out);
  return values;
}

void batch_norm_statistics(const Tensor& x, const Tensor& mean, const Tensor& m2) {
  checks::batch_norm_statistics(x, mean, m2);
  const Values input = load(x);
  const auto rows = static_cast<double>(x.shape().rows());
  Values means(static_cast<std::size_t>(mean.numel()), 0.0);
  for (std::size_t i = 0; i < input.size(); ++i) means[i % means.size()] += input[i] / rows;
  Values squares(means.size(), 0.0);
  for (std::size_t i = 0; i < input.size(); ++i) {
    const double deviation = input[i] - means[i % means.size()];
    squares[i % means.size()] += deviation * deviation;
  }
  store(means, mean);
  store(squares, m2);
}

void batch_norm_finalize(const Tensor& packed, double epsilon, double momentum, const Tensor& running,
                         const Tensor& mean, const Tensor& inv_std, const Tensor& count, const Tensor& next_running) {
  checks::batch_norm_finalize(packed, running, mean, inv_std, count, next_running);
  const Values shares = load(packed);
  const std::size_t channels = static_cast<std::size_t>(mean.numel()), stride = 2 * channels + 1;
  double rows = 0;
  Values means(channels, 0.0), squares(channels, 0.0);
  for (std::size_t share = 0; share < shares.size(); share += stride) {
    const double share_rows = shares[share + 2 * channels];
    if (share_rows == 0) continue;
    // Chan, Golub, LeVeque: "Updating formulae and a pairwise algorithm for computing sample variances", 1979.
    const double whole = rows + share_rows;
    for (std::size_t c = 0; c < channels; ++c) {
      const double distance = shares[share + c] - means[c];
      means[c] += distance * share_rows / whole;
      squares[c] += shares[share + channels + c] + distance * distance * rows * share_rows / whole;
    }
    rows = whole;
  }
  Values scales(channels);
  for (std::size_t c = 0; c < channels; ++c) scales[c] = 1 / std::sqrt((rows > 0 ? squares[c] / rows : 0) + epsilon);
  store(means, mean);
  store(scales, inv_std);
  store({rows}, count);
  if (!running.defined()) return;
  Values next = load(running);
  for (std::size_t c = 0; rows > 0 && c < channels; ++c) {
    const double variance = squares[c] / std::max(rows - 1, 1.0);
    next[c] += momentum * (means[c] - next[c]);
    next[channels + c] += momentum * (variance - next[channels + c]);
  }
  store(next, next_running);
}

void batch_norm_measure(const Tensor& x, double epsilon, double momentum, const Tensor& running, const Tensor& mean,
                        const Tensor& inv_std, const Tensor& count, const Tensor& next_running) {
  checks::batch_norm_measure(x, running, mean, inv_std, count, next_running);
  measure_in_parts(kBatchNormalization, kElementwise, x, epsilon, momentum, running, mean, inv_std, count,
                   next_running);
}

void batch_norm_apply(const Tensor& x, const Tensor& mean, const Tensor& inv_std, const Tensor& gamma,
                      const Tensor& beta, const Tensor& residual, bool relu, const Tensor& y) {
  checks::batch_norm_apply(x, mean, inv_std, gamma, beta, residual, y);
  Values values = load(x);
  const Values mu = load(mean), scale = load(inv_std), weight = load(gamma), bias = load(beta);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t c = i % mu.size();
    values[i] = (values[i] - mu[c]) * scale[c] * weight[c] + bias[c];
  }
  if (residual.defined()) {
    const Values shortcut = load(residual);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += shortcut[i];
  }
  if (relu) {
    for (double& value : values) value = value < 0 ? 0 : value;  // NaN stays
  }
  store(values, y);
}

void batch_norm_backward_reduce(const Tensor& x, const Tensor& mean, const BatchNormGradient& gradient,
                                const BatchNormMask& mask, const Tensor& sum_dy, const Tensor& sum_dy_xmu,
                                const BatchNormParameterGradients& gradients) {
  checks::batch_norm_backward_reduce(x, mean, gradient, mask, sum_dy, sum_dy_xmu, gradients);
  const Values input = load(x), mu = load(mean), dy = masked(gradient, mask);
  Values sums(mu.size(), 0.0), products(mu.size(), 0.0);
  for (std::size_t i = 0; i < input.size(); ++i) {
    const std::size_t c = i % mu.size();
    sums[c] += dy[i];
    products[c] += dy[i] * (input[i] - mu[c]);
  }
  store(sums, sum_dy);
  store(products, sum_dy_xmu);
  write_parameter_gradients(kElementwise, sum_dy, sum_dy_xmu, gradients);
}

void batch_norm_backward_apply(const Tensor& x, const Tensor& mean, const Tensor& inv_std, const Tensor& gamma,
                               const Tensor& dy, const BatchNormMask& mask, const Tensor& sum_dy,
                               const Tensor& sum_dy_xmu, const Tensor& count, const Tensor& dx) {
  checks::batch_norm_backward_apply(x, mean, inv_std, gamma, dy, mask, sum_dy, sum_dy_xmu, count, dx);
  const Values input = load(x), mu = load(mean), scale = load(inv_std), weight = load(gamma);
  const Values gradient = masked(dy, mask);
  const bool batch_statistics = count.defined();
  const Values constant(mu.size(), 0.0);
  const Values sums = batch_statistics ? load(sum_dy) : constant;
  const Values products = batch_statistics ? load(sum_dy_xmu) : constant;
  const double share = batch_statistics ? 1 / count.item() : 0;
  Values result(input.size());
  for (std::size_t i = 0; i < input.size(); ++i) {
    const std::size_t c = i % mu.size();
    const double through_mean = sums[c] * share;
    const double through_variance = (input[i] - mu[c]) * scale[c] * scale[c] * products[c] * share;
    result[i] = weight[c] * scale[c] * (gradient[i] - through_mean - through_variance);
  }
  store(result, dx);
}

}  // namespace

const BatchNormalization kBatchNormalization{.batch_norm_statistics = batch_norm_statistics,
                                             .batch_norm_finalize = batch_norm_finalize,
                                             .batch_norm_measure = batch_norm_measure,
                                             .batch_norm_apply = batch_norm_apply,
                                             .batch_norm_backward_reduce = batch_norm_backward_reduce,
                                             .batch_norm_backward_apply = batch_norm_backward_apply};

}  // namespace lockstep::kernels::reference
