// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cpu/loops/channels.inl.h"

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {
namespace {

/// Terms that are added up in float32; longer sums are sums of such.
constexpr std::int64_t kSummed = 4096;

/// The sum of term(i) for begin <= i < end, in as many partial sums as hide the latency of an addition.
template <class Term>
float sum_of_part(std::int64_t begin, std::int64_t end, Term term) {
  const std::int64_t quarter = (end - begin) / 64 * 16;
  float a = 0, b = 0, c = 0, d = 0, rest = 0;
#pragma omp simd reduction(+ : a, b, c, d)
  for (std::int64_t i = begin; i < begin + quarter; ++i) {
    a += term(i);
    b += term(quarter + i);
    c += term(2 * quarter + i);
    d += term(3 * quarter + i);
  }
#pragma omp simd reduction(+ : rest)
  for (std::int64_t i = begin + 4 * quarter; i < end; ++i) rest += term(i);
  return ((a + b) + (c + d)) + rest;
}

template <class Term>
double row_sum(std::int64_t n, Term term) {
  double sum = 0;
  for (std::int64_t begin = 0; begin < n; begin += kSummed) {
    sum += static_cast<double>(sum_of_part(begin, std::min(n, begin + kSummed), term));
  }
  return sum;
}

/// A row of n elements as float32: where it lies, or widened into `buffer`.
const float* whole_row(Input in, std::int64_t first, std::int64_t n, float* buffer) {
  if (in.dtype == DType::kFloat32) return static_cast<const float*>(in.data) + first;
  widen(in.from(first), n, buffer);
  return buffer;
}

// Two passes for the statistics, over a row that the first of them has brought into the cache: no distance between the
// mean and 0 costs digits of the variance.
void layer_norm(Input x, const LayerNormParameters& parameters, double epsilon, Output y, float* mean, float* inv_std,
                std::int64_t rows, std::int64_t channels, float* buffer) {
  const float* const weight = parameters.weight;
  const float* const bias = parameters.bias;
  const double count = static_cast<double>(channels);
  Writer y_block(y);
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t first = row * channels;
    const float* const values = whole_row(x, first, channels, buffer);
    float center = 0;
    if (mean != nullptr) {
      center = static_cast<float>(row_sum(channels, [=](std::int64_t i) { return values[i]; }) / count);
      mean[row] = center;
    }
    const double squares = row_sum(channels, [=](std::int64_t i) {
      const float distance = values[i] - center;
      return distance * distance;
    });
    const float scale = static_cast<float>(1.0 / std::sqrt(squares / count + epsilon));
    inv_std[row] = scale;
    for_each_block(channels, [&](std::int64_t begin, std::int64_t n) {
      transform_block(
          n, y_block(first + begin, n), [=](float v, float w, float b) { return (v - center) * scale * w + b; },
          values + begin, weight + begin, bias + begin);
      y_block.commit();
    });
  }
}

void layer_norm_backward(Input x, const LayerNormParameters& parameters, const float* mean, const float* inv_std,
                         Input dy, Output dx, float* dweight, float* dbias, std::int64_t rows, std::int64_t channels,
                         float* buffers) {
  const float* const weight = parameters.weight;
  const float share = 1.0f / static_cast<float>(channels);
  std::fill_n(dweight, channels, 0.0f);
  std::fill_n(dbias, channels, 0.0f);
  Writer dx_block(dx);
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t first = row * channels;
    const float* const values = whole_row(x, first, channels, buffers);
    const float* const slopes = whole_row(dy, first, channels, buffers + channels);
    const float center = mean != nullptr ? mean[row] : 0.0f;
    const float scale = inv_std[row];
    double sum = 0;
    double product = 0;
    for (std::int64_t begin = 0; begin < channels; begin += kSummed) {
      const std::int64_t end = std::min(channels, begin + kSummed);
      float part_sum = 0;
      float part_product = 0;
#pragma omp simd reduction(+ : part_sum, part_product)
      for (std::int64_t i = begin; i < end; ++i) {
        const float normal = (values[i] - center) * scale;
        const float slope = slopes[i];
        dweight[i] += slope * normal;
        dbias[i] += slope;
        const float own = slope * weight[i];
        part_sum += own;
        part_product += own * normal;
      }
      sum += static_cast<double>(part_sum);
      product += static_cast<double>(part_product);
    }
    if (dx.data == nullptr) continue;
    const float through_mean = mean != nullptr ? static_cast<float>(sum) * share : 0.0f;
    const float through_scale = static_cast<float>(product) * share;
    for_each_block(channels, [&](std::int64_t begin, std::int64_t n) {
      transform_block(
          n, dx_block(first + begin, n),
          [=](float v, float d, float w) {
            return scale * (d * w - through_mean - (v - center) * scale * through_scale);
          },
          values + begin, slopes + begin, weight + begin);
      dx_block.commit();
    });
  }
}

void group_norm_backward_apply(Input x, const GroupNormSlopes& slopes, Input dy, Output dx, std::int64_t rows,
                               std::int64_t channels) {
  const Tiling tiling(rows, channels);
  const TiledParameter means(slopes.mean, tiling);
  const TiledParameter scales(slopes.scale, tiling);
  const TiledParameter slope_values(slopes.slope, tiling);
  const TiledParameter offsets(slopes.offset, tiling);
  Reader x_block(x);
  Reader dy_block(dy);
  Writer dx_block(dx);
  for_each_tile(tiling, [&](std::int64_t begin, std::int64_t column, std::int64_t n) {
    transform_block(
        n, dx_block(begin, n),
        [](float v, float d, float mean, float scale, float slope, float offset) {
          return scale * d - ((v - mean) * slope + offset);
        },
        x_block(begin, n), dy_block(begin, n), means.data() + column, scales.data() + column,
        slope_values.data() + column, offsets.data() + column);
    dx_block.commit();
  });
}

}  // namespace
}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA
