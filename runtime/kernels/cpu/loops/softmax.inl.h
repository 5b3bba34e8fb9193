// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cpu/loops/block.inl.h"

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {
namespace {

template <class Term>
float float_sum_block(std::int64_t n, Term term) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += term(i);
  return sum;
}

float max_block(std::int64_t n, const float* values) {
  float largest = values[0];
#pragma omp simd reduction(max : largest)
  for (std::int64_t i = 0; i < n; ++i) largest = values[i] > largest ? values[i] : largest;
  return largest;
}

/// log sum_c e^(x_c) of a row is max + log(sum).
struct Exponentials {
  // Not -inf, for which a row that starts with -inf would give NaN.
  float max = std::numeric_limits<float>::lowest();
  float sum = 0;
};

/// One pass over the row: the sum so far is scaled whenever a block raises the maximum.
Exponentials sum_exponentials(Reader& x, std::int64_t first, std::int64_t channels) {
  Exponentials row;
  for_each_block(channels, [&](std::int64_t begin, std::int64_t n) {
    const float* values = x(first + begin, n);
    const float max = std::max(row.max, max_block(n, values));
    row.sum *= fast_exp(row.max - max);
    row.max = max;
    row.sum += float_sum_block(n, [=](std::int64_t i) { return fast_exp(values[i] - max); });
  });
  return row;
}

void softmax(Input x, bool log, Output y, std::int64_t rows, std::int64_t channels) {
  Reader x_block(x);
  Writer y_block(y);
  for (std::int64_t first = 0; first < rows * channels; first += channels) {
    const auto [max, sum] = sum_exponentials(x_block, first, channels);
    const auto write = [&](auto probability) {
      for_each_block(channels, [&](std::int64_t begin, std::int64_t n) {
        transform_block(n, y_block(first + begin, n), probability, x_block(first + begin, n));
        y_block.commit();
      });
    };
    if (log) {
      write([max = max, log_sum = std::log(sum)](float v) { return (v - max) - log_sum; });
    } else {
      write([max = max, inverse = 1.0f / sum](float v) { return fast_exp(v - max) * inverse; });
    }
  }
}

void softmax_backward(Input y, bool log, Input dy, Output dx, std::int64_t rows, std::int64_t channels) {
  Reader y_block(y);
  Reader dy_block(dy);
  Writer dx_block(dx);
  for (std::int64_t first = 0; first < rows * channels; first += channels) {
    float sum = 0;
    for_each_block(channels, [&](std::int64_t begin, std::int64_t n) {
      const float* ys = y_block(first + begin, n);
      const float* dys = dy_block(first + begin, n);
      sum += log ? float_sum_block(n, [=](std::int64_t i) { return dys[i]; })
                 : float_sum_block(n, [=](std::int64_t i) { return dys[i] * ys[i]; });
    });
    const auto write = [&](auto gradient) {
      for_each_block(channels, [&](std::int64_t begin, std::int64_t n) {
        transform_block(n, dx_block(first + begin, n), gradient, y_block(first + begin, n), dy_block(first + begin, n));
        dx_block.commit();
      });
    };
    if (log) {
      write([sum](float v, float d) { return d - fast_exp(v) * sum; });
    } else {
      write([sum](float v, float d) { return v * (d - sum); });
    }
  }
}

double cross_entropy(Input logits, const std::int64_t* targets, float smoothing, float* log_sum_exp, std::int64_t rows,
                     std::int64_t channels) {
  Reader x_block(logits);
  double loss = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t first = row * channels;
    const auto [max, sum] = sum_exponentials(x_block, first, channels);
    const float log_sum = std::log(sum);
    log_sum_exp[row] = max + log_sum;
    // Distances from the maximum are exact where the logits themselves are large.
    const float of_target = max - *x_block(first + targets[row], 1);
    float distance = of_target;
    if (smoothing > 0) {
      float sum_of_distances = 0;
      for_each_block(channels, [&, max = max](std::int64_t begin, std::int64_t n) {
        const float* values = x_block(first + begin, n);
        sum_of_distances += float_sum_block(n, [=](std::int64_t i) { return max - values[i]; });
      });
      distance = (1.0f - smoothing) * of_target + smoothing * (sum_of_distances / static_cast<float>(channels));
    }
    loss += static_cast<double>(distance + log_sum);
  }
  return loss;
}

void cross_entropy_backward(Input logits, const std::int64_t* targets, float smoothing, const float* log_sum_exp,
                            float factor, Output dlogits, std::int64_t rows, std::int64_t channels) {
  Reader x_block(logits);
  Writer dx_block(dlogits);
  const float everywhere = smoothing / static_cast<float>(channels);
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t first = row * channels;
    for_each_block(channels, [&](std::int64_t begin, std::int64_t n) {
      float* to = dx_block(first + begin, n);
      const float log_sum = log_sum_exp[row];
      transform_block(
          n, to, [=](float v) { return factor * (fast_exp(v - log_sum) - everywhere); }, x_block(first + begin, n));
      const std::int64_t target = targets[row] - begin;
      if (target >= 0 && target < n) to[target] -= factor * (1.0f - smoothing);
      dx_block.commit();
    });
  }
}

void mse_backward(Input x, Input target, float factor, Output dx, std::int64_t n) {
  transform(
      n, dx, [factor](float v, float t) { return factor * (v - t); }, x, target);
}

}  // namespace
}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA
