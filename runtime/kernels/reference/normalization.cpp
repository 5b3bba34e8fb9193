// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/normalization.h"

#include <cmath>

#include "runtime/kernels/geometry/operand_checks.h"
#include "runtime/kernels/reference/families.h"
#include "runtime/kernels/reference/values.h"

namespace lockstep::kernels::reference {

namespace {

/// [rows, channels] in sets of elements that share their statistics: `rows_of_set` rows and channels / groups channels.
struct Sets {
  std::size_t channels;
  std::size_t groups;
  std::size_t rows_of_set;

  std::size_t channel(std::size_t element) const { return element % channels; }
  std::size_t set(std::size_t element) const {
    const std::size_t sample = element / channels / rows_of_set;
    return sample * groups + channel(element) / (channels / groups);
  }
  double size() const { return static_cast<double>(rows_of_set * (channels / groups)); }
};

Sets rows_of(const Tensor& x) { return {static_cast<std::size_t>(x.shape().back()), 1, 1}; }

Sets groups_of(const Tensor& x, const Tensor& inv_std) {
  std::size_t pixels = 1;
  for (int d = 1; d + 1 < x.shape().rank(); ++d) pixels *= static_cast<std::size_t>(x.size(d));
  return {static_cast<std::size_t>(x.shape().back()), static_cast<std::size_t>(inv_std.size(1)), pixels};
}

Values load_or(const Tensor& tensor, std::int64_t n, double value) {
  return tensor.defined() ? load(tensor) : Values(static_cast<std::size_t>(n), value);
}

void normalize(const Sets& sets, const Tensor& x, const Tensor& weight, const Tensor& bias, double epsilon,
               const Tensor& y, const Tensor& mean, const Tensor& inv_std) {
  Values values = load(x);
  const Values gamma = load_or(weight, x.shape().back(), 1), beta = load_or(bias, x.shape().back(), 0);
  Values means(static_cast<std::size_t>(inv_std.numel()), 0.0), scales(means.size(), 0.0);
  if (mean.defined()) {
    for (std::size_t i = 0; i < values.size(); ++i) means[sets.set(i)] += values[i] / sets.size();
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double distance = values[i] - means[sets.set(i)];
    scales[sets.set(i)] += distance * distance / sets.size();
  }
  for (double& scale : scales) scale = 1 / std::sqrt(scale + epsilon);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t set = sets.set(i), c = sets.channel(i);
    values[i] = (values[i] - means[set]) * scales[set] * gamma[c] + beta[c];
  }
  store(values, y);
  if (mean.defined()) store(means, mean);
  store(scales, inv_std);
}

void gradients(const Sets& sets, const Tensor& x, const Tensor& weight, const Tensor& mean, const Tensor& inv_std,
               const Tensor& dy, const Tensor& dx, const Tensor& dweight, const Tensor& dbias) {
  const Values slope = load(dy), gamma = load_or(weight, x.shape().back(), 1), scales = load(inv_std);
  const Values means = load_or(mean, inv_std.numel(), 0);
  Values normal = load(x);
  Values through_mean(scales.size(), 0.0), through_scale(scales.size(), 0.0);
  Values gamma_slope(gamma.size(), 0.0), beta_slope(gamma.size(), 0.0);
  for (std::size_t i = 0; i < normal.size(); ++i) {
    const std::size_t set = sets.set(i), c = sets.channel(i);
    normal[i] = (normal[i] - means[set]) * scales[set];
    gamma_slope[c] += slope[i] * normal[i];
    beta_slope[c] += slope[i];
    if (mean.defined()) through_mean[set] += slope[i] * gamma[c] / sets.size();
    through_scale[set] += slope[i] * gamma[c] * normal[i] / sets.size();
  }
  if (dweight.defined()) store(gamma_slope, dweight);
  if (dbias.defined()) store(beta_slope, dbias);
  if (!dx.defined()) return;
  for (std::size_t i = 0; i < normal.size(); ++i) {
    const std::size_t set = sets.set(i);
    const double own = slope[i] * gamma[sets.channel(i)];
    normal[i] = scales[set] * (own - through_mean[set] - normal[i] * through_scale[set]);
  }
  store(normal, dx);
}

void layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double epsilon, const Tensor& y,
                const Tensor& mean, const Tensor& inv_std) {
  checks::layer_norm(x, weight, bias, y, mean, inv_std);
  normalize(rows_of(x), x, weight, bias, epsilon, y, mean, inv_std);
}

void layer_norm_backward(const Tensor& x, const Tensor& weight, const Tensor& mean, const Tensor& inv_std,
                         const Tensor& dy, const Tensor& dx, const Tensor& dweight, const Tensor& dbias) {
  checks::layer_norm_backward(x, weight, mean, inv_std, dy, dx, dweight, dbias);
  gradients(rows_of(x), x, weight, mean, inv_std, dy, dx, dweight, dbias);
}

void group_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double epsilon, const Tensor& y,
                const Tensor& mean, const Tensor& inv_std) {
  checks::group_norm(x, weight, bias, y, mean, inv_std);
  normalize(groups_of(x, inv_std), x, weight, bias, epsilon, y, mean, inv_std);
}

void group_norm_backward(const Tensor& x, const Tensor& weight, const Tensor& mean, const Tensor& inv_std,
                         const Tensor& dy, const Tensor& dx, const Tensor& dweight, const Tensor& dbias) {
  checks::group_norm_backward(x, weight, mean, inv_std, dy, dx, dweight, dbias);
  gradients(groups_of(x, inv_std), x, weight, mean, inv_std, dy, dx, dweight, dbias);
}

}  // namespace

const Normalization kNormalization{.layer_norm = layer_norm,
                                   .layer_norm_backward = layer_norm_backward,
                                   .group_norm = group_norm,
                                   .group_norm_backward = group_norm_backward};

}  // namespace lockstep::kernels::reference
