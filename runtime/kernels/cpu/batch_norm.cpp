// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/functors/batch_norm.h"

#include <vector>

#include "runtime/kernels/cpu/channel_sums.h"
#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/fast_dtypes.h"
#include "runtime/kernels/cpu/loops/loops.h"
#include "runtime/kernels/geometry/operand_checks.h"
#include "runtime/kernels/reference/batch_norm_parts.h"
#include "runtime/kernels/reference/families.h"

namespace lockstep::kernels::cpu {

namespace {

float* float_data(const Tensor& tensor) { return static_cast<float*>(tensor.data()); }

/// Mean and sum of squared deviations of each channel over the rows seen so far.
struct Moments {
  double count = 0;
  std::vector<double> mean;
  std::vector<double> m2;

  explicit Moments(std::int64_t channels) : mean(static_cast<std::size_t>(channels)), m2(mean.size()) {}

  /// Adds rows of which the sum and the sum of squares of x - pivot are known. Chan, Golub, LeVeque: "Updating formulae
  /// and a pairwise algorithm for computing sample variances", 1979.
  void add(std::int64_t rows, const float* pivot, const float* sum, const float* sum_of_squares) {
    const double added = static_cast<double>(rows);
    const double share = added / (count + added);
    for (std::size_t c = 0; c < mean.size(); ++c) {
      const double offset = static_cast<double>(sum[c]) / added;
      const double own_m2 = static_cast<double>(sum_of_squares[c]) - static_cast<double>(sum[c]) * offset;
      const double distance = static_cast<double>(pivot[c]) + offset - mean[c];
      mean[c] += distance * share;
      // Rounding may take a variance of 0 below it. Not std::max, which would hide a NaN.
      m2[c] += (own_m2 < 0 ? 0 : own_m2) + distance * distance * count * share;
    }
    count += added;
  }
};

void batch_norm_statistics(const Tensor& x, const Tensor& mean, const Tensor& m2) {
  checks::batch_norm_statistics(x, mean, m2);
  if (!is_fast(x)) return reference::kBatchNormalization.batch_norm_statistics(x, mean, m2);
  const std::int64_t channels = mean.numel();
  const ChannelPartials partials(x.shape().rows(), channels, 3);
  partials.fill([&](std::int64_t chunk, std::int64_t first_element, std::int64_t rows) {
    loops().batch_norm_statistics(input(x).from(first_element), rows, channels, partials.at(chunk, 0),
                                  partials.at(chunk, 1), partials.at(chunk, 2));
  });
  Moments all(channels);
  for (std::int64_t chunk = 0; chunk < partials.chunks(); ++chunk) {
    all.add(partials.chunk_rows(chunk), partials.at(chunk, 0), partials.at(chunk, 1), partials.at(chunk, 2));
  }
  round_to_float(all.mean, mean);
  round_to_float(all.m2, m2);
}

void batch_norm_finalize(const Tensor& packed, double epsilon, double momentum, const Tensor& running,
                         const Tensor& mean, const Tensor& inv_std, const Tensor& count, const Tensor& next_running) {
  checks::batch_norm_finalize(packed, running, mean, inv_std, count, next_running);
  if (!is_fast(packed)) {
    return reference::kBatchNormalization.batch_norm_finalize(packed, epsilon, momentum, running, mean, inv_std, count,
                                                              next_running);
  }
  // A few values for each channel: nothing to make faster.
  const std::int64_t channels = mean.numel(), shares = packed.size(0), stride = 2 * channels + 1;
  double rows = 0;
  for (std::int64_t share = 0; share < shares; ++share) rows += float_data(packed)[share * stride + 2 * channels];
  *float_data(count) = static_cast<float>(rows);
  for (std::int64_t c = 0; c < channels; ++c) {
    JoinedShares all;
    for (std::int64_t share = 0; share < shares; ++share) {
      const float* const part = float_data(packed) + share * stride;
      all.add(part[c], part[channels + c], part[2 * channels]);
    }
    float_data(mean)[c] = static_cast<float>(all.mean);
    float_data(inv_std)[c] = static_cast<float>(all.inv_std(epsilon));
    if (!running.defined()) continue;
    float_data(next_running)[c] = static_cast<float>(all.next_mean(float_data(running)[c], momentum));
    float_data(next_running)[channels + c] =
        static_cast<float>(all.next_variance(float_data(running)[channels + c], momentum));
  }
}

void batch_norm_measure(const Tensor& x, double epsilon, double momentum, const Tensor& running, const Tensor& mean,
                        const Tensor& inv_std, const Tensor& count, const Tensor& next_running) {
  checks::batch_norm_measure(x, running, mean, inv_std, count, next_running);
  reference::measure_in_parts(kBatchNormalization, kElementwise, x, epsilon, momentum, running, mean, inv_std, count,
                              next_running);
}

void batch_norm_apply(const Tensor& x, const Tensor& mean, const Tensor& inv_std, const Tensor& gamma,
                      const Tensor& beta, const Tensor& residual, bool relu, const Tensor& y) {
  checks::batch_norm_apply(x, mean, inv_std, gamma, beta, residual, y);
  if (!is_fast(x)) {
    return reference::kBatchNormalization.batch_norm_apply(x, mean, inv_std, gamma, beta, residual, relu, y);
  }
  const std::int64_t channels = mean.numel();
  const Tensor scale_of = Tensor::empty({channels}, DType::kFloat32);
  kElementwise.multiply(inv_std, gamma, scale_of);
  const BatchNormParameters parameters{float_data(mean), float_data(scale_of), float_data(beta)};
  parallel_rows(x.shape().rows(), channels, [&](std::int64_t first, std::int64_t rows) {
    const std::int64_t begin = first * channels;
    loops().batch_norm_apply(input(x).from(begin), parameters,
                             residual.defined() ? input(residual).from(begin) : input(residual), relu,
                             output(y).from(begin), rows, channels);
  });
}

void batch_norm_backward_reduce(const Tensor& x, const Tensor& mean, const BatchNormGradient& gradient,
                                const BatchNormMask& mask, const Tensor& sum_dy, const Tensor& sum_dy_xmu,
                                const BatchNormParameterGradients& gradients) {
  checks::batch_norm_backward_reduce(x, mean, gradient, mask, sum_dy, sum_dy_xmu, gradients);
  if (!is_fast(x)) {
    return reference::kBatchNormalization.batch_norm_backward_reduce(x, mean, gradient, mask, sum_dy, sum_dy_xmu,
                                                                     gradients);
  }
  const auto part = [](const Tensor& tensor, std::int64_t begin) {
    return tensor.defined() ? input(tensor).from(begin) : input(tensor);
  };
  const std::int64_t channels = mean.numel();
  const ChannelPartials partials(x.shape().rows(), channels, 2);
  partials.fill([&](std::int64_t chunk, std::int64_t begin, std::int64_t rows) {
    const BatchNormGradients from{part(gradient.dy, begin), part(gradient.addend, begin), part(mask.y, begin)};
    const Output masked = gradient.masked.defined() ? output(gradient.masked).from(begin) : output(gradient.masked);
    loops().batch_norm_backward_reduce(input(x).from(begin), float_data(mean), from, masked, rows, channels,
                                       partials.at(chunk, 0), partials.at(chunk, 1));
  });
  round_to_float(partials.totals(0), sum_dy);
  round_to_float(partials.totals(1), sum_dy_xmu);
  reference::write_parameter_gradients(kElementwise, sum_dy, sum_dy_xmu, gradients);
}

void batch_norm_backward_apply(const Tensor& x, const Tensor& mean, const Tensor& inv_std, const Tensor& gamma,
                               const Tensor& dy, const BatchNormMask& mask, const Tensor& sum_dy,
                               const Tensor& sum_dy_xmu, const Tensor& count, const Tensor& dx) {
  checks::batch_norm_backward_apply(x, mean, inv_std, gamma, dy, mask, sum_dy, sum_dy_xmu, count, dx);
  if (!is_fast(x)) {
    return reference::kBatchNormalization.batch_norm_backward_apply(x, mean, inv_std, gamma, dy, mask, sum_dy,
                                                                    sum_dy_xmu, count, dx);
  }
  const std::int64_t channels = mean.numel();
  const Tensor scale_of = Tensor::empty({channels}, DType::kFloat32);
  kElementwise.multiply(inv_std, gamma, scale_of);
  const Tensor slopes_of = Tensor::zeros({2, channels}, DType::kFloat32);
  const BatchNormParameters parameters{float_data(mean), float_data(scale_of), nullptr};
  const BatchNormSlopes slopes{float_data(slopes_of), float_data(slopes_of) + channels};
  const double all_rows = count.defined() ? count.item() : 0;
  if (all_rows > 0) {
    for (std::int64_t c = 0; c < channels; ++c) {
      const double inverse = static_cast<double>(float_data(inv_std)[c]);
      float_data(slopes_of)[c] = static_cast<float>(static_cast<double>(float_data(sum_dy)[c]) / all_rows);
      float_data(slopes_of)[channels + c] =
          static_cast<float>(inverse * inverse * static_cast<double>(float_data(sum_dy_xmu)[c]) / all_rows);
    }
  }
  parallel_rows(x.shape().rows(), channels, [&](std::int64_t first, std::int64_t rows) {
    const std::int64_t begin = first * channels;
    loops().batch_norm_backward_apply(input(x).from(begin), parameters, slopes, input(dy).from(begin),
                                      mask.y.defined() ? input(mask.y).from(begin) : input(Tensor()),
                                      output(dx).from(begin), rows, channels);
  });
}

}  // namespace

const BatchNormalization kBatchNormalization{.batch_norm_statistics = batch_norm_statistics,
                                             .batch_norm_finalize = batch_norm_finalize,
                                             .batch_norm_measure = batch_norm_measure,
                                             .batch_norm_apply = batch_norm_apply,
                                             .batch_norm_backward_reduce = batch_norm_backward_reduce,
                                             .batch_norm_backward_apply = batch_norm_backward_apply};

}  // namespace lockstep::kernels::cpu
