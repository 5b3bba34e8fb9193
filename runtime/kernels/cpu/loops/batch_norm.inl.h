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
  TileGroupReader x_tiles(x, tiling);
  for_each_tile_group(tiling, [&](auto count, std::int64_t begin, std::int64_t column, std::int64_t n) {
    const auto xs = x_tiles.template read<count>(begin, n);
    const float* p = pivots.data() + column;
    float* first_sum = first.data() + column;
    float* second_sum = second.data() + column;
    LOCKSTEP_VECTORIZE for (std::int64_t i = 0; i < n; ++i) {
      float distance = 0;
      float square = 0;
      for (const float* tile : xs) {
        const float d = tile[i] - p[i];
        distance += d;
        square += d * d;
      }
      first_sum[i] += distance;
      second_sum[i] += square;
    }
  });
  first.fold();
  second.fold();
}

template <class Finish, class... Readers>
void batch_norm_apply_as(Finish finish, Input x, const BatchNormParameters& parameters, Output y, std::int64_t rows,
                         std::int64_t channels, Readers&&... residual) {
  const Tiling tiling(rows, channels);
  const TiledParameter means(parameters.mean, tiling);
  const TiledParameter scales(parameters.scale, tiling);
  const TiledParameter shifts(parameters.shift, tiling);
  Reader x_block(x);
  Writer y_block(y);
  for_each_tile(tiling, [&](std::int64_t begin, std::int64_t column, std::int64_t n) {
    transform_block(
        n, y_block(begin, n),
        [finish](float v, float mean, float scale, float shift, auto... added) {
          return finish((batch_norm(v, mean, scale, shift) + ... + added));
        },
        x_block(begin, n), means.data() + column, scales.data() + column, shifts.data() + column,
        residual(begin, n)...);
    y_block.commit();
  });
}

void batch_norm_apply(Input x, const BatchNormParameters& parameters, Input residual, bool with_relu, Output y,
                      std::int64_t rows, std::int64_t channels) {
  const auto apply = [&](auto finish) {
    if (residual.data != nullptr) {
      batch_norm_apply_as(finish, x, parameters, y, rows, channels, Reader(residual));
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

void batch_norm_backward_reduce(Input x, const float* mean, Input dy, Input y, std::int64_t rows, std::int64_t channels,
                                float* sum_dy, float* sum_dy_xmu) {
  const Tiling tiling(rows, channels);
  const TiledParameter means(mean, tiling);
  TiledSum first(sum_dy, tiling);
  TiledSum second(sum_dy_xmu, tiling);
  TileGroupReader x_tiles(x, tiling);
  TileGroupReader dy_tiles(dy, tiling);
  TileGroupReader y_tiles(y, tiling);
  for_each_tile_group(tiling, [&](auto count, std::int64_t begin, std::int64_t column, std::int64_t n) {
    const auto xs = x_tiles.template read<count>(begin, n);
    const auto dys = dy_tiles.template read<count>(begin, n);
    const float* m = means.data() + column;
    float* first_sum = first.data() + column;
    float* second_sum = second.data() + column;
    const auto add_group = [&](auto masked_dy) {
      LOCKSTEP_VECTORIZE for (std::int64_t i = 0; i < n; ++i) {
        float sum = 0;
        float product = 0;
        for (std::size_t t = 0; t < count; ++t) {
          const float d = masked_dy(t, i);
          sum += d;
          product += d * (xs[t][i] - m[i]);
        }
        first_sum[i] += sum;
        second_sum[i] += product;
      }
    };
    if (y.data == nullptr) return add_group([&](std::size_t t, std::int64_t i) { return dys[t][i]; });
    const auto ys = y_tiles.template read<count>(begin, n);
    add_group([&](std::size_t t, std::int64_t i) { return Relu::backward(ys[t][i], dys[t][i]); });
  });
  first.fold();
  second.fold();
}

void batch_norm_backward_apply(Input x, const BatchNormParameters& parameters, const BatchNormSlopes& slopes, Input dy,
                               Input y, Output dx, Output dresidual, std::int64_t rows, std::int64_t channels) {
  const Tiling tiling(rows, channels);
  const TiledParameter means(parameters.mean, tiling);
  const TiledParameter scales(parameters.scale, tiling);
  const TiledParameter mean_dys(slopes.mean_dy, tiling);
  const TiledParameter slope_values(slopes.slope, tiling);
  Reader x_block(x);
  Reader dy_block(dy);
  Reader y_block(y);
  Writer dx_block(dx);
  Writer dresidual_block(dresidual);
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
    if (dresidual.data == nullptr) return;
    transform_block(
        n, dresidual_block(begin, n), [](float g) { return g; }, d);
    dresidual_block.commit();
  });
}

}  // namespace
}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA
