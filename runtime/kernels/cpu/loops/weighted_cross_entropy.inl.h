// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cpu/loops/softmax.inl.h"

// Cross entropy whose classes and rows have weights. Without weights there is less to read: softmax.inl.h.

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {
namespace {

double weighted_cross_entropy(Input logits, const WeightedTargets& targets, float* log_sum_exp, std::int64_t rows,
                              std::int64_t channels) {
  Reader x_block(logits);
  const float everywhere = targets.smoothing / static_cast<float>(channels);
  double loss = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t first = row * channels;
    const auto [max, sum] = sum_exponentials(x_block, first, channels);
    const float log_sum = std::log(sum);
    log_sum_exp[row] = max + log_sum;
    if (targets.row_weights[row] == 0) continue;
    const std::int64_t target = targets.classes[row];
    // Distances from the maximum are exact where the logits themselves are large.
    const float of_target = (max - *x_block(first + target, 1)) + log_sum;
    float of_row = (1.0f - targets.smoothing) * targets.class_weights[target] * of_target;
    if (targets.smoothing > 0) {
      float distances = 0;
      for_each_block(channels, [&, max = max](std::int64_t begin, std::int64_t n) {
        const float* values = x_block(first + begin, n);
        const float* weights = targets.class_weights + begin;
        distances += float_sum_block(n, [=](std::int64_t i) { return weights[i] * (max - values[i]); });
      });
      of_row += everywhere * (distances + targets.sum_of_class_weights * log_sum);
    }
    loss += static_cast<double>(targets.row_weights[row]) * static_cast<double>(of_row);
  }
  return loss;
}

void weighted_cross_entropy_backward(Input logits, const WeightedTargets& targets, const float* log_sum_exp,
                                     float factor, Output dlogits, std::int64_t rows, std::int64_t channels) {
  Reader x_block(logits);
  Writer dx_block(dlogits);
  const float everywhere = targets.smoothing / static_cast<float>(channels);
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t first = row * channels;
    const std::int64_t target = targets.classes[row];
    const bool counts = targets.row_weights[row] != 0;
    const float of_row = factor * targets.row_weights[row];
    const float of_target = counts ? (1.0f - targets.smoothing) * targets.class_weights[target] : 0.0f;
    const float share = of_target + everywhere * targets.sum_of_class_weights;
    const float log_sum = log_sum_exp[row];
    for_each_block(channels, [&](std::int64_t begin, std::int64_t n) {
      float* to = dx_block(first + begin, n);
      if (counts) {
        transform_block(
            n, to, [=](float v, float w) { return of_row * (share * fast_exp(v - log_sum) - everywhere * w); },
            x_block(first + begin, n), targets.class_weights + begin);
        if (target >= begin && target < begin + n) to[target - begin] -= of_row * of_target;
      } else {
        std::fill_n(to, n, 0.0f);
      }
      dx_block.commit();
    });
  }
}

}  // namespace
}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA
