// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/normalization.h"

#include <cmath>

#include "runtime/kernels/cpu/channel_sums.h"
#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/fast_dtypes.h"
#include "runtime/kernels/cpu/loops/loops.h"
#include "runtime/kernels/cpu/thread_buffers.h"
#include "runtime/kernels/elementwise.h"
#include "runtime/kernels/geometry/operand_checks.h"
#include "runtime/kernels/reference/families.h"

namespace lockstep::kernels::cpu {

namespace {

float* floats(const Tensor& tensor) { return tensor.defined() ? static_cast<float*>(tensor.data()) : nullptr; }

/// `tensor`, or where it is undefined so many times `value`.
Tensor or_constant(const Tensor& tensor, std::int64_t channels, double value) {
  if (tensor.defined()) return tensor;
  const Tensor constant = Tensor::empty({channels}, DType::kFloat32);
  kElementwise.fill(constant, value);
  return constant;
}

void layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double epsilon, const Tensor& y,
                const Tensor& mean, const Tensor& inv_std) {
  checks::layer_norm(x, weight, bias, y, mean, inv_std);
  if (!is_fast(x) || x.numel() == 0) {
    return reference::kNormalization.layer_norm(x, weight, bias, epsilon, y, mean, inv_std);
  }
  const std::int64_t channels = x.shape().back();
  const Tensor scales = or_constant(weight, channels, 1), shifts = or_constant(bias, channels, 0);
  parallel_rows(x.shape().rows(), channels, [&](std::int64_t first, std::int64_t rows) {
    loops().layer_norm(input(x).from(first * channels), {floats(scales), floats(shifts)}, epsilon,
                       output(y).from(first * channels), mean.defined() ? floats(mean) + first : nullptr,
                       floats(inv_std) + first, rows, channels);
  });
}

void layer_norm_backward(const Tensor& x, const Tensor& weight, const Tensor& mean, const Tensor& inv_std,
                         const Tensor& dy, const Tensor& dx, const Tensor& dweight, const Tensor& dbias) {
  checks::layer_norm_backward(x, weight, mean, inv_std, dy, dx, dweight, dbias);
  if (!is_fast(x) || x.numel() == 0) {
    return reference::kNormalization.layer_norm_backward(x, weight, mean, inv_std, dy, dx, dweight, dbias);
  }
  const std::int64_t channels = x.shape().back();
  const Tensor scales = or_constant(weight, channels, 1);
  const ChannelPartials partials(x.shape().rows(), channels, 2);
  partials.fill([&](std::int64_t chunk, std::int64_t begin, std::int64_t rows) {
    const std::int64_t first = begin / channels;
    loops().layer_norm_backward(input(x).from(begin), {floats(scales), nullptr},
                                mean.defined() ? floats(mean) + first : nullptr, floats(inv_std) + first,
                                input(dy).from(begin), dx.defined() ? output(dx).from(begin) : output(dx),
                                partials.at(chunk, 0), partials.at(chunk, 1), rows, channels);
  });
  if (dweight.defined()) round_to_float(partials.totals(0), dweight);
  if (dbias.defined()) round_to_float(partials.totals(1), dbias);
}

/// x [samples, rows, channels] of group normalisation. A sample is worked on while it is in the cache: by one thread,
/// or, of few large samples, by all of them, chunk by chunk of its rows. The chunks do not depend on the threads.
struct Samples {
  std::int64_t samples;
  std::int64_t rows;
  std::int64_t channels;
  std::int64_t groups;
  std::int64_t chunk_rows;
  std::int64_t chunks;

  Samples(const Tensor& x, const Tensor& inv_std)
      : samples(x.size(0)),
        rows(x.numel() / (x.size(0) * x.shape().back())),
        channels(x.shape().back()),
        groups(inv_std.size(1)),
        chunk_rows(std::max<std::int64_t>(256, 32768 / channels)),
        chunks((rows + chunk_rows - 1) / chunk_rows) {}

  std::int64_t numel() const { return rows * channels; }
  std::int64_t width() const { return channels / groups; }
  double group_size() const { return static_cast<double>(rows * width()); }
  std::int64_t rows_of(std::int64_t chunk) const { return std::min(chunk_rows, rows - chunk * chunk_rows); }

  template <class F>
  void for_each(F f) const {
    parallel_ranges(samples, kGrainElements / numel(), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t sample = begin; sample < end; ++sample) f(sample);
    });
  }
  enum class Order { kForwards, kBackwards };

  /// Calls f(chunk, its first element in the tensor, its rows). Backwards, a second pass finds in the cache what the
  /// first one read last.
  template <class F>
  void for_each_chunk(std::int64_t sample, Order order, F f) const {
    const std::int64_t grain = std::max<std::int64_t>(1, kGrainElements / (chunk_rows * channels));
    parallel_ranges(chunks, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t chunk = order == Order::kForwards ? i : begin + end - 1 - i;
        f(chunk, sample * numel() + chunk * chunk_rows * channels, rows_of(chunk));
      }
    });
  }
};

/// The mean of a group and 1 / its standard deviation, of pivot, sum and sum of squares [channels] behind each other
/// for each chunk, x being counted from the pivot.
std::pair<float, float> group_statistics(const Samples& at, const float* partials, std::int64_t group, double epsilon) {
  const auto for_each_part = [&](auto f) {
    for (std::int64_t chunk = 0; chunk < at.chunks; ++chunk) {
      const float* const pivot = partials + chunk * 3 * at.channels + group * at.width();
      const double rows = static_cast<double>(at.rows_of(chunk));
      for (std::int64_t c = 0; c < at.width(); ++c) {
        f(rows, static_cast<double>(pivot[c]), static_cast<double>(pivot[at.channels + c]),
          static_cast<double>(pivot[2 * at.channels + c]));
      }
    }
  };
  double sum = 0;
  for_each_part([&](double rows, double pivot, double of_part, double) { sum += rows * pivot + of_part; });
  const double mean = sum / at.group_size();
  // The sum of squared distances from the mean, from each part's sums of distances from its pivot.
  double squares = 0;
  for_each_part([&](double rows, double pivot, double of_part, double squares_of_part) {
    const double distance = pivot - mean;
    squares += squares_of_part + distance * (2 * of_part + rows * distance);
  });
  // Rounding may take a variance of 0 below it. Not std::max, which would hide a NaN.
  const double variance = (squares < 0 ? 0 : squares) / at.group_size();
  return {static_cast<float>(mean), static_cast<float>(1 / std::sqrt(variance + epsilon))};
}

void group_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double epsilon, const Tensor& y,
                const Tensor& mean, const Tensor& inv_std) {
  checks::group_norm(x, weight, bias, y, mean, inv_std);
  if (!is_fast(x) || x.numel() == 0) {
    return reference::kNormalization.group_norm(x, weight, bias, epsilon, y, mean, inv_std);
  }
  const Samples at(x, inv_std);
  const Tensor scales = or_constant(weight, at.channels, 1), shifts = or_constant(bias, at.channels, 0);
  const ThreadBuffers buffers((3 * at.chunks + 2) * at.channels);
  at.for_each([&](std::int64_t sample) {
    float* const means = buffers.mine();
    float* const factors = means + at.channels;
    float* const partials = factors + at.channels;
    at.for_each_chunk(sample, Samples::Order::kForwards,
                      [&](std::int64_t chunk, std::int64_t begin, std::int64_t rows) {
                        float* const pivot = partials + chunk * 3 * at.channels;
                        loops().batch_norm_statistics(input(x).from(begin), rows, at.channels, pivot,
                                                      pivot + at.channels, pivot + 2 * at.channels);
                      });
    for (std::int64_t group = 0; group < at.groups; ++group) {
      const auto [center, scale] = group_statistics(at, partials, group, epsilon);
      floats(mean)[sample * at.groups + group] = center;
      floats(inv_std)[sample * at.groups + group] = scale;
      for (std::int64_t c = group * at.width(); c < (group + 1) * at.width(); ++c) {
        means[c] = center;
        factors[c] = scale * floats(scales)[c];
      }
    }
    at.for_each_chunk(sample, Samples::Order::kBackwards, [&](std::int64_t, std::int64_t begin, std::int64_t rows) {
      loops().batch_norm_apply(input(x).from(begin), {means, factors, floats(shifts)}, input({}), false,
                               output(y).from(begin), rows, at.channels);
    });
  });
}

void group_norm_backward(const Tensor& x, const Tensor& weight, const Tensor& mean, const Tensor& inv_std,
                         const Tensor& dy, const Tensor& dx, const Tensor& dweight, const Tensor& dbias) {
  checks::group_norm_backward(x, weight, mean, inv_std, dy, dx, dweight, dbias);
  if (!is_fast(x) || x.numel() == 0) {
    return reference::kNormalization.group_norm_backward(x, weight, mean, inv_std, dy, dx, dweight, dbias);
  }
  const Samples at(x, inv_std);
  const Tensor scales = or_constant(weight, at.channels, 1);
  // The sums of dy, and of dy (x - mean) inv_std, over the rows of each sample and channel.
  const Tensor sums = Tensor::empty({at.samples, 2, at.channels}, DType::kFloat32);
  const ThreadBuffers buffers((2 * at.chunks + 4) * at.channels);
  at.for_each([&](std::int64_t sample) {
    float* const means = buffers.mine();
    float* const factors = means + at.channels;
    float* const slopes = factors + at.channels;
    float* const offsets = slopes + at.channels;
    float* const partials = offsets + at.channels;
    for (std::int64_t c = 0; c < at.channels; ++c) means[c] = floats(mean)[sample * at.groups + c / at.width()];
    at.for_each_chunk(sample, Samples::Order::kForwards,
                      [&](std::int64_t chunk, std::int64_t begin, std::int64_t rows) {
                        float* const sum_dy = partials + chunk * 2 * at.channels;
                        loops().batch_norm_backward_reduce(input(x).from(begin), means, {.dy = input(dy).from(begin)},
                                                           {}, rows, at.channels, sum_dy, sum_dy + at.channels);
                      });
    float* const sum_dy = floats(sums) + sample * 2 * at.channels;
    float* const sum_dy_normal = sum_dy + at.channels;
    for (std::int64_t group = 0; group < at.groups; ++group) {
      const float scale = floats(inv_std)[sample * at.groups + group];
      double through_mean = 0;
      double through_scale = 0;
      for (std::int64_t c = group * at.width(); c < (group + 1) * at.width(); ++c) {
        double sum = 0;
        double product = 0;
        for (std::int64_t chunk = 0; chunk < at.chunks; ++chunk) {
          sum += static_cast<double>(partials[chunk * 2 * at.channels + c]);
          product += static_cast<double>(partials[(chunk * 2 + 1) * at.channels + c]);
        }
        product *= static_cast<double>(scale);
        sum_dy[c] = static_cast<float>(sum);
        sum_dy_normal[c] = static_cast<float>(product);
        through_mean += static_cast<double>(floats(scales)[c]) * sum;
        through_scale += static_cast<double>(floats(scales)[c]) * product;
      }
      const float slope = scale * scale * static_cast<float>(through_scale / at.group_size());
      const float offset = scale * static_cast<float>(through_mean / at.group_size());
      for (std::int64_t c = group * at.width(); c < (group + 1) * at.width(); ++c) {
        factors[c] = scale * floats(scales)[c];
        slopes[c] = slope;
        offsets[c] = offset;
      }
    }
    if (!dx.defined()) return;
    at.for_each_chunk(sample, Samples::Order::kBackwards, [&](std::int64_t, std::int64_t begin, std::int64_t rows) {
      loops().group_norm_backward_apply(input(x).from(begin), {means, factors, slopes, offsets}, input(dy).from(begin),
                                        output(dx).from(begin), rows, at.channels);
    });
  });
  const auto over_samples = [&](std::int64_t kind, const Tensor& out) {
    if (!out.defined()) return;
    std::vector<double> totals(static_cast<std::size_t>(at.channels), 0.0);
    for (std::int64_t sample = 0; sample < at.samples; ++sample) {
      const float* const values = floats(sums) + (sample * 2 + kind) * at.channels;
      for (std::size_t c = 0; c < totals.size(); ++c) totals[c] += static_cast<double>(values[c]);
    }
    round_to_float(totals, out);
  };
  over_samples(1, dweight);
  over_samples(0, dbias);
}

}  // namespace

const Normalization kNormalization{.layer_norm = layer_norm,
                                   .layer_norm_backward = layer_norm_backward,
                                   .group_norm = group_norm,
                                   .group_norm_backward = group_norm_backward};

}  // namespace lockstep::kernels::cpu
