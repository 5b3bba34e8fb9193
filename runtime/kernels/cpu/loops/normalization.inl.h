// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cpu/loops/channels.inl.h"

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {
namespace {

// Rows are passed over several times while they are in the cache, in whole vectors: 16-bit elements are widened anew
// each time, which is less work than keeping them as float32.

/// Terms of a row that are added up in float32; longer sums are sums of such.
constexpr std::int64_t kSummed = 4096;

/// The sum over a row of term(i, n): vectors that are zero behind their n elements.
template <class Term>
double row_sum(std::int64_t channels, Term term) {
  double sum = 0;
  for (std::int64_t begin = 0; begin < channels; begin += kSummed) {
    const std::int64_t end = std::min(channels, begin + kSummed);
    // As many partial sums as hide the latency of an addition.
    Lanes a{}, b{}, c{}, d{};
    std::int64_t i = begin;
    for (; i + 4 * kLanes <= end; i += 4 * kLanes) {
      a += term(i, kLanes);
      b += term(i + kLanes, kLanes);
      c += term(i + 2 * kLanes, kLanes);
      d += term(i + 3 * kLanes, kLanes);
    }
    for_each_lanes(i, end, [&](std::int64_t at, std::int64_t n) { a += term(at, n); });
    sum += static_cast<double>(sum_of_lanes((a + b) + (c + d)));
  }
  return sum;
}

/// 1 in the first n lanes, 0 in the others.
Lanes first_lanes(std::int64_t n) {
  float ones[kLanes] = {};
  std::fill_n(ones, n, 1.0f);
  return load_float(ones);
}

/// Asks for the elements of a row before they are needed: while one that is in the cache is worked on, the next comes.
template <class Element>
void prefetch(const Element* row, std::int64_t begin, std::int64_t n) {
  constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(Element));
  for (std::int64_t i = begin; i < begin + n; i += kLine) __builtin_prefetch(row + i);
}

/// Calls f(count, row) for groups of `Rows` rows, and for each of those left; count is a constant.
template <int Rows, class F>
void for_each_rows(std::int64_t rows, F f) {
  std::int64_t row = 0;
  for (; row + Rows <= rows; row += Rows) f(std::integral_constant<int, Rows>(), row);
  for (; row < rows; ++row) f(std::integral_constant<int, 1>(), row);
}

/// visit_formats() of a loop whose result may also have 16 bits where its input is float32.
template <class F>
void visit_row_formats(DType in, DType result, F f) {
  if (in != DType::kFloat32 || result == DType::kFloat32) return visit_formats(in, result, f);
  return result == DType::kFloat16 ? f.template operator()<FloatLanes, HalfLanes>()
                                   : f.template operator()<FloatLanes, BFloat16Lanes>();
}

/// `Rows` rows at once: the root of one row's statistics need not be there before the next row is added up. Two passes
/// for the statistics: no distance between the mean and 0 costs digits of the variance.
template <int Rows, class X, class Y>
void layer_norm_of(const typename X::Element* x, const LayerNormParameters& parameters, double epsilon,
                   typename Y::Element* y, float* mean, float* inv_std, std::int64_t channels, bool more) {
  const double count = static_cast<double>(channels);
  float center[Rows] = {};
  float scale[Rows];
  for (int r = 0; mean != nullptr && r < Rows; ++r) {
    const auto* const row = x + r * channels;
    const double sum = row_sum(channels, [row](std::int64_t i, std::int64_t n) { return load_lanes<X>(row + i, n); });
    mean[r] = center[r] = static_cast<float>(sum / count);
  }
  for (int r = 0; r < Rows; ++r) {
    const auto* const row = x + r * channels;
    const double squares = row_sum(channels, [row, from = center[r]](std::int64_t i, std::int64_t n) {
      Lanes distance = load_lanes<X>(row + i, n) - from;
      if (n < kLanes) distance *= first_lanes(n);
      return distance * distance;
    });
    inv_std[r] = scale[r] = static_cast<float>(1.0 / std::sqrt(squares / count + epsilon));
  }
  for_each_block(channels, [&](std::int64_t block, std::int64_t width) {
    for (int r = 0; more && r < Rows; ++r) prefetch(x + (Rows + r) * channels, block, width);
    for_each_lanes(block, block + width, [&](std::int64_t i, std::int64_t n) {
      const Lanes weight = load_lanes<FloatLanes>(parameters.weight + i, n);
      const Lanes bias = load_lanes<FloatLanes>(parameters.bias + i, n);
      for (int r = 0; r < Rows; ++r) {
        const Lanes normal = (load_lanes<X>(x + r * channels + i, n) - center[r]) * scale[r];
        store_lanes<Y>(y + r * channels + i, normal * weight + bias, n);
      }
    });
  });
}

void layer_norm(Input x, const LayerNormParameters& parameters, double epsilon, Output y, float* mean, float* inv_std,
                std::int64_t rows, std::int64_t channels) {
  constexpr std::int64_t kShort = 1024;  // several such rows fit the first-level cache
  visit_row_formats(x.dtype, y.dtype, [&]<class X, class Y>() {
    const auto pass = [&]<int count>(std::integral_constant<int, count>, std::int64_t row) {
      const std::int64_t first = row * channels;
      layer_norm_of<count, X, Y>(elements<X>(x) + first, parameters, epsilon, elements<Y>(y) + first,
                                 mean != nullptr ? mean + row : nullptr, inv_std + row, channels,
                                 row + 2 * count <= rows);
    };
    channels <= kShort ? for_each_rows<4>(rows, pass) : for_each_rows<1>(rows, pass);
  });
}

/// `Rows` rows at once: the parameters' gradients are loaded and stored once for all of them.
template <int Rows, class X, class Y>
void layer_norm_backward_of(const typename X::Element* x, const float* weight, const float* mean, const float* inv_std,
                            const typename Y::Element* dy, typename X::Element* dx, float* dweight, float* dbias,
                            std::int64_t channels, bool more) {
  float center[Rows];
  double sum[Rows] = {};
  double product[Rows] = {};
  for (int r = 0; r < Rows; ++r) center[r] = mean != nullptr ? mean[r] : 0.0f;
  for (std::int64_t begin = 0; begin < channels; begin += kSummed) {
    Lanes part_sum[Rows] = {};
    Lanes part_product[Rows] = {};
    for_each_lanes(begin, std::min(channels, begin + kSummed), [&](std::int64_t i, std::int64_t n) {
      const Lanes factor = load_lanes<FloatLanes>(weight + i, n);
      Lanes of_weight = load_lanes<FloatLanes>(dweight + i, n);
      Lanes of_bias = load_lanes<FloatLanes>(dbias + i, n);
      for (int r = 0; r < Rows; ++r) {
        const Lanes normal = (load_lanes<X>(x + r * channels + i, n) - center[r]) * inv_std[r];
        const Lanes slope = load_lanes<Y>(dy + r * channels + i, n);
        of_weight += slope * normal;
        of_bias += slope;
        part_sum[r] += slope * factor;
        part_product[r] += slope * factor * normal;
      }
      store_lanes<FloatLanes>(dweight + i, of_weight, n);
      store_lanes<FloatLanes>(dbias + i, of_bias, n);
    });
    for (int r = 0; r < Rows; ++r) {
      sum[r] += static_cast<double>(sum_of_lanes(part_sum[r]));
      product[r] += static_cast<double>(sum_of_lanes(part_product[r]));
    }
  }
  if (dx == nullptr) return;
  for (int r = 0; r < Rows; ++r, x += channels, dy += channels, dx += channels) {
    // scale (dy weight - average - normal * average) with normal = (x - center) scale
    const float scale = inv_std[r];
    const double count = static_cast<double>(channels);
    const float offset = mean != nullptr ? scale * static_cast<float>(sum[r] / count) : 0.0f;
    const float tilt = scale * scale * static_cast<float>(product[r] / count);
    const float from = center[r];
    for_each_block(channels, [&](std::int64_t block, std::int64_t width) {
      if (more) {
        prefetch(x + Rows * channels, block, width);
        prefetch(dy + Rows * channels, block, width);
      }
      for_each_lanes(block, block + width, [&](std::int64_t i, std::int64_t n) {
        const Lanes slope = load_lanes<Y>(dy + i, n) * (load_lanes<FloatLanes>(weight + i, n) * scale);
        const Lanes through_statistics = (load_lanes<X>(x + i, n) - from) * tilt + offset;
        store_lanes<X>(dx + i, slope - through_statistics, n);
      });
    });
  }
}

void layer_norm_backward(Input x, const LayerNormParameters& parameters, const float* mean, const float* inv_std,
                         Input dy, Output dx, float* dweight, float* dbias, std::int64_t rows, std::int64_t channels) {
  std::fill_n(dweight, channels, 0.0f);
  std::fill_n(dbias, channels, 0.0f);
  visit_row_formats(x.dtype, dy.dtype, [&]<class X, class Y>() {
    const auto pass = [&]<int count>(std::integral_constant<int, count>, std::int64_t row) {
      const std::int64_t first = row * channels;
      auto* const to = elements<X>(dx);
      layer_norm_backward_of<count, X, Y>(elements<X>(x) + first, parameters.weight,
                                          mean != nullptr ? mean + row : nullptr, inv_std + row,
                                          elements<Y>(dy) + first, to != nullptr ? to + first : nullptr, dweight, dbias,
                                          channels, row + 2 * count <= rows);
    };
    for_each_rows<4>(rows, pass);
  });
}

void group_norm_backward_apply(Input x, const GroupNormSlopes& slopes, Input dy, Output dx, std::int64_t rows,
                               std::int64_t channels) {
  const Tiling tiling(rows, channels);
  const TiledParameter means(slopes.mean, tiling);
  const TiledParameter scales(slopes.scale, tiling);
  const TiledParameter slope_values(slopes.slope, tiling);
  const TiledParameter offsets(slopes.offset, tiling);
  visit_formats(x.dtype, dy.dtype, [&]<class X, class D>() {
    for_each_tile(tiling, [&](std::int64_t begin, std::int64_t column, std::int64_t n) {
      transform_tiles<X>(
          n, elements<X>(dx) + begin, dx.past_caches,
          [](float v, float d, float mean, float scale, float slope, float offset) {
            return scale * d - ((v - mean) * slope + offset);
          },
          source<X>(x, begin), source<D>(dy, begin), means.at(column), scales.at(column), slope_values.at(column),
          offsets.at(column));
    });
  });
  if (dx.past_caches) drain_streams();
}

}  // namespace
}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA
