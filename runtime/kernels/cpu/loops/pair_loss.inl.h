// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cpu/loops/block.inl.h"
#include "runtime/kernels/cpu/loops/reductions.inl.h"

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {
namespace {

double pair_loss(const PairLossFunction& which, Input x, Input target, std::int64_t total) {
  Reader x_block(x), target_block(target);
  double sum = 0;
  visit_pair_loss(which, [&](auto function) {
    for_each_block(total, [&](std::int64_t begin, std::int64_t n) {
      const float* xs = x_block(begin, n);
      const float* targets = target_block(begin, n);
      sum += sum_block(n, [function, xs, targets](std::int64_t i) {
        return static_cast<double>(function.value(xs[i], targets[i]));
      });
    });
  });
  return sum;
}

void pair_loss_backward(const PairLossFunction& which, Input x, Input target, PairSide side, float factor,
                        Output gradient, std::int64_t n) {
  visit_pair_slope(which, side, [&](auto slope) {
    transform(
        n, gradient, [slope, factor](float v, float t) { return factor * slope(v, t); }, x, target);
  });
}

}  // namespace
}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA
