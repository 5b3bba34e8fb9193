// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cpu/loops/channels.inl.h"
#include "runtime/kernels/cpu/loops/elementwise.inl.h"
#include "runtime/kernels/cpu/loops/reductions.inl.h"

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {
namespace {

// One pass: the mean of some of the chunk's own rows as the pivot keeps the difference of squares well conditioned,
// wherever the data lies, since the distance of those rows from the mean is part of what is summed.
void batch_norm_statistics(Input x, std::int64_t rows, std::int64_t channels, float* pivot, float* sum,
                           float* sum_of_squares) {
  const std::int64_t pivot_rows = std::min<std::int64_t>(rows, 16);
  sum_rows(x, pivot_rows, channels, pivot);
  scale({pivot, DType::kFloat32}, 1.0f / static_cast<float>(pivot_rows), {pivot, DType::kFloat32}, channels);
  const Tiling tiling(rows, channels);
  const TiledParameter pivots(pivot, tiling);
  TiledSum first(sum, tiling);
  TiledSum second(sum_of_squares, tiling);
  visit_format(x.dtype, [&]<class X>(X) {
    const auto* const from = elements<X>(x);
    for_each_tile_group(tiling, [&](auto count, std::int64_t begin, std::int64_t column, std::int64_t n) {
      const auto* const tiles = from + begin;
      const std::int64_t width = tiling.width;
      const float* const p = pivots.data() + column;
      float* const first_sum = first.data() + column;
      float* const second_sum = second.data() + column;
      for_each_lanes(
          0, n, [=](std::int64_t i, std::int64_t k) __attribute__((always_inline)) {
            const Lanes about = load_lanes<FloatLanes>(p + i, k);
            Lanes distance{};
            Lanes square{};
            for (std::int64_t t = 0; t < count; ++t) {
              const Lanes d = load_lanes<X>(tiles + t * width + i, k) - about;
              distance += d;
              square = multiply_add(d, d, square);
            }
            add_lanes(first_sum + i, distance, k);
            add_lanes(second_sum + i, square, k);
          });
    });
  });
  first.fold();
  second.fold();
}

template <class Finish, class... Residual>
void batch_norm_apply_as(Finish finish, Input x, const BatchNormParameters& parameters, Output y, std::int64_t rows,
                         std::int64_t channels, Residual... residual) {
  const Tiling tiling(rows, channels);
  const TiledParameter means(parameters.mean, tiling);
  const TiledParameter scales(parameters.scale, tiling);
  const TiledParameter shifts(parameters.shift, tiling);
  visit_formats(x.dtype, y.dtype, [&]<class X, class Y>() {
    for_each_tile(tiling, [&](std::int64_t begin, std::int64_t column, std::int64_t n) {
      transform_tiles<Y>(
          n, elements<Y>(y) + begin, y.past_caches,
          [finish](float v, float mean, float scale, float shift, auto... added) {
            return finish((batch_norm(v, mean, scale, shift) + ... + added));
          },
          source<X>(x, begin), means.at(column), scales.at(column), shifts.at(column), source<X>(residual, begin)...);
    });
  });
  if (y.past_caches) drain_streams();
}

void batch_norm_apply(Input x, const BatchNormParameters& parameters, Input residual, bool with_relu, Output y,
                      std::int64_t rows, std::int64_t channels) {
  const auto apply = [&](auto finish) {
    if (residual.data != nullptr) {
      batch_norm_apply_as(finish, x, parameters, y, rows, channels, residual);
    } else {
      batch_norm_apply_as(finish, x, parameters, y, rows, channels);
    }
  };
  if (with_relu) {
    apply([](float v) { return Relu::value(v); });
  } else {
    apply([](float v) { return v; });
  }
}

void batch_norm_backward_reduce(Input x, const float* mean, const BatchNormGradients& gradients, Output masked,
                                std::int64_t rows, std::int64_t channels, float* sum_dy, float* sum_dy_xmu) {
  const auto dy = gradients.dy, addend = gradients.addend, y = gradients.y;  // which a lambda can name
  const Tiling tiling(rows, channels);
  const TiledParameter means(mean, tiling);
  TiledSum first(sum_dy, tiling);
  TiledSum second(sum_dy_xmu, tiling);
  visit_formats(x.dtype, dy.dtype, [&]<class X, class D>() {
    const auto add_tiles = [&](auto is_masked, auto is_written, auto is_sum) {
      for_each_tile_group(tiling, [&](auto count, std::int64_t begin, std::int64_t column, std::int64_t n) {
        const auto* const xs = elements<X>(x) + begin;
        const auto* const dys = elements<D>(dy) + begin;
        const auto* const addends = is_sum ? elements<D>(addend) + begin : nullptr;
        const auto* const ys = is_masked ? elements<X>(y) + begin : nullptr;
        auto* const out = is_written ? elements<D>(masked) + begin : nullptr;
        const std::int64_t width = tiling.width;
        const float* const m = means.data() + column;
        float* const first_sum = first.data() + column;
        float* const second_sum = second.data() + column;
        for_each_lanes(
            0, n, [=](std::int64_t i, std::int64_t k) __attribute__((always_inline)) {
              const Lanes center = load_lanes<FloatLanes>(m + i, k);
              Lanes sum{};
              Lanes product{};
              for (std::int64_t t = 0; t < count; ++t) {
                const std::int64_t at = t * width + i;
                Lanes d = load_lanes<D>(dys + at, k);
                if constexpr (is_sum) d += load_lanes<D>(addends + at, k);
                if constexpr (is_masked) d = load_lanes<X>(ys + at, k) > 0.0f ? d : Lanes{};
                if constexpr (is_written) store_lanes<D>(out + at, d, k);
                if constexpr (is_sum) d = load_lanes<D>(out + at, k);  // rounded
                sum += d;
                // Left to the compiler, the fused loop and the loop alone may round apart.
                product = multiply_add(d, load_lanes<X>(xs + at, k) - center, product);
              }
              add_lanes(first_sum + i, sum, k);
              add_lanes(second_sum + i, product, k);
            });
      });
    };
    const auto add_written = [&](auto is_masked) {
      if (addend.data != nullptr) return add_tiles(is_masked, std::true_type(), std::true_type());
      if (masked.data != nullptr) return add_tiles(is_masked, std::true_type(), std::false_type());
      add_tiles(is_masked, std::false_type(), std::false_type());
    };
    y.data != nullptr ? add_written(std::true_type()) : add_written(std::false_type());
  });
  first.fold();
  second.fold();
}

void batch_norm_backward_apply(Input x, const BatchNormParameters& parameters, const BatchNormSlopes& slopes, Input dy,
                               Input y, Output dx, std::int64_t rows, std::int64_t channels) {
  const Tiling tiling(rows, channels);
  const TiledParameter means(parameters.mean, tiling);
  const TiledParameter scales(parameters.scale, tiling);
  const TiledParameter mean_dys(slopes.mean_dy, tiling);
  const TiledParameter slope_values(slopes.slope, tiling);
  Reader x_block(x);
  Reader dy_block(dy);
  Reader y_block(y);
  Writer dx_block(dx);
  alignas(64) float masked[kBlock];
  for_each_tile(tiling, [&](std::int64_t begin, std::int64_t column, std::int64_t n) {
    const float* d = dy_block(begin, n);
    if (y.data != nullptr) {
      transform_block(
          n, masked, [](float v, float g) { return Relu::backward(v, g); }, y_block(begin, n), d);
      d = masked;
    }
    transform_block(
        n, dx_block(begin, n),
        [](float v, float g, float mean, float scale, float mean_dy, float slope) {
          return batch_norm_backward(v, g, mean, scale, mean_dy, slope);
        },
        x_block(begin, n), d, means.data() + column, scales.data() + column, mean_dys.data() + column,
        slope_values.data() + column);
    dx_block.commit();
  });
}

}  // namespace
}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA
