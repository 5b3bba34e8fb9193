// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cpu/loops/channels.inl.h"

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {
namespace {

// Rows are passed over several times while they are in the cache, in whole vectors: 16-bit elements are widened anew
// each time, which is less work than keeping them as float32.

/// n <= kLanes elements; the others are zero.
template <class Format>
Lanes load_lanes(const typename Format::Element* in, std::int64_t n) {
  return n == kLanes ? Format::load(in) : load_some<Format>(in, n);
}

template <class Format>
void store_lanes(typename Format::Element* out, Lanes x, std::int64_t n) {
  n == kLanes ? Format::store(out, x) : store_some<Format>(out, x, n);
}

float sum_of_lanes(Lanes x) {
  float lanes[kLanes];
  store_float(lanes, x);
  for (std::int64_t width = kLanes / 2; width > 0; width /= 2) {
    for (std::int64_t i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  }
  return lanes[0];
}

/// Calls f(i, n) for the vectors of [begin, end): n elements from i on.
template <class F>
void for_each_lanes(std::int64_t begin, std::int64_t end, F f) {
  std::int64_t i = begin;
  for (; i + kLanes <= end; i += kLanes) f(i, kLanes);
  if (i < end) f(i, end - i);
}

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

/// Calls f.template operator()<In, Result>() with the formats of a loop's input and of its result, which has the same
/// dtype or is float32.
template <class F>
void visit_formats(DType in, DType result, F f) {
  if (in == DType::kFloat32) return f.template operator()<FloatLanes, FloatLanes>();
  const bool wide = result == DType::kFloat32;
  if (in == DType::kFloat16) {
    return wide ? f.template operator()<HalfLanes, FloatLanes>() : f.template operator()<HalfLanes, HalfLanes>();
  }
  return wide ? f.template operator()<BFloat16Lanes, FloatLanes>()
              : f.template operator()<BFloat16Lanes, BFloat16Lanes>();
}

// Two passes for the statistics: no distance between the mean and 0 costs digits of the variance.
template <class X, class Y>
void layer_norm_as(const typename X::Element* x, const LayerNormParameters& parameters, double epsilon,
                   typename Y::Element* y, float* mean, float* inv_std, std::int64_t rows, std::int64_t channels) {
  const double count = static_cast<double>(channels);
  for (std::int64_t row = 0; row < rows; ++row, x += channels, y += channels) {
    float center = 0;
    if (mean != nullptr) {
      center = static_cast<float>(
          row_sum(channels, [x](std::int64_t i, std::int64_t n) { return load_lanes<X>(x + i, n); }) / count);
      mean[row] = center;
    }
    const double squares = row_sum(channels, [x, center](std::int64_t i, std::int64_t n) {
      Lanes distance = load_lanes<X>(x + i, n) - center;
      if (n < kLanes) distance *= first_lanes(n);
      return distance * distance;
    });
    const float scale = static_cast<float>(1.0 / std::sqrt(squares / count + epsilon));
    inv_std[row] = scale;
    const bool more = row + 1 < rows;
    for_each_block(channels, [&](std::int64_t block, std::int64_t width) {
      if (more) prefetch(x + channels, block, width);
      for_each_lanes(block, block + width, [&](std::int64_t i, std::int64_t n) {
        const Lanes normal = (load_lanes<X>(x + i, n) - center) * scale;
        const Lanes weight = load_lanes<FloatLanes>(parameters.weight + i, n);
        const Lanes bias = load_lanes<FloatLanes>(parameters.bias + i, n);
        store_lanes<Y>(y + i, normal * weight + bias, n);
      });
    });
  }
}

void layer_norm(Input x, const LayerNormParameters& parameters, double epsilon, Output y, float* mean, float* inv_std,
                std::int64_t rows, std::int64_t channels) {
  visit_formats(x.dtype, y.dtype, [&]<class X, class Y>() {
    layer_norm_as<X, Y>(static_cast<const typename X::Element*>(x.data), parameters, epsilon,
                        static_cast<typename Y::Element*>(y.data), mean, inv_std, rows, channels);
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
  visit_formats(x.dtype, dy.dtype, [&]<class X, class Y>() {
    const auto pass = [&]<int count>(std::integral_constant<int, count>, std::int64_t row) {
      const std::int64_t first = row * channels;
      auto* const to = static_cast<typename X::Element*>(dx.data);
      layer_norm_backward_of<count, X, Y>(static_cast<const typename X::Element*>(x.data) + first, parameters.weight,
                                          mean != nullptr ? mean + row : nullptr, inv_std + row,
                                          static_cast<const typename Y::Element*>(dy.data) + first,
                                          to != nullptr ? to + first : nullptr, dweight, dbias, channels,
                                          row + 2 * count <= rows);
    };
    constexpr std::integral_constant<int, 4> kGroup;
    std::int64_t row = 0;
    for (; row + kGroup <= rows; row += kGroup) pass(kGroup, row);
    for (; row < rows; ++row) pass(std::integral_constant<int, 1>(), row);
  });
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
