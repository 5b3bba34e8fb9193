// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cpu/loops/block.inl.h"

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {
namespace {

/// step(factor, running, term) for what is defined: 1 and 0 stand in for the others.
template <class F>
void visit_scan(Input a, Input b, F f) {
  if (a.data == nullptr) return f([](double, double running, double term) { return running + term; });
  if (b.data == nullptr) return f([](double factor, double running, double) { return factor * running; });
  f([](double factor, double running, double term) { return factor * running + term; });
}

/// Neighbours of one line depend on each other: one at a time.
void scan_line(Input a, Input b, bool reverse, Output y, std::int64_t n) {
  Reader a_block(a), b_block(b);
  Writer y_block(y);
  double running = b.data == nullptr ? 1 : 0;
  const std::int64_t blocks = (n + kBlock - 1) / kBlock;
  visit_scan(a, b, [&](auto step) {
    for (std::int64_t block = 0; block < blocks; ++block) {
      const std::int64_t begin = (reverse ? blocks - 1 - block : block) * kBlock;
      const std::int64_t count = std::min(kBlock, n - begin);
      float* to = y_block(begin, count);
      const float* terms = b.data == nullptr ? to : b_block(begin, count);
      const float* factors = a.data == nullptr ? to : a_block(begin, count);
      for (std::int64_t j = 0; j < count; ++j) {
        const std::int64_t i = reverse ? count - 1 - j : j;
        const bool first = block == 0 && j == 0 && b.data != nullptr;
        running = first ? static_cast<double>(terms[i])
                        : step(a.data == nullptr ? 1.0 : static_cast<double>(factors[i]), running,
                               b.data == nullptr ? 0.0 : static_cast<double>(terms[i]));
        to[i] = static_cast<float>(running);
      }
      y_block.commit();
    }
  });
}

/// width <= kBlock columns of rows that lie `stride` apart.
void scan_columns(Input a, Input b, bool reverse, Output y, std::int64_t rows, std::int64_t stride,
                  std::int64_t width) {
  Reader a_block(a), b_block(b);
  Writer y_block(y);
  alignas(64) double running[kBlock];
  std::fill_n(running, width, b.data == nullptr ? 1.0 : 0.0);
  visit_scan(a, b, [&](auto step) {
    for (std::int64_t k = 0; k < rows; ++k) {
      const std::int64_t at = (reverse ? rows - 1 - k : k) * stride;
      float* to = y_block(at, width);
      // What is undefined is not read; some memory stands in for it.
      const float* terms = b.data == nullptr ? a_block(at, width) : b_block(at, width);
      const float* factors = a.data == nullptr ? terms : a_block(at, width);
      if (k == 0 && b.data != nullptr) {
        LOCKSTEP_VECTORIZE for (std::int64_t i = 0; i < width; ++i) running[i] = static_cast<double>(terms[i]);
      } else {
        LOCKSTEP_VECTORIZE for (std::int64_t i = 0; i < width; ++i) {
          running[i] = step(static_cast<double>(factors[i]), running[i], static_cast<double>(terms[i]));
        }
      }
      LOCKSTEP_VECTORIZE for (std::int64_t i = 0; i < width; ++i) to[i] = static_cast<float>(running[i]);
      y_block.commit();
    }
  });
}

}  // namespace
}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA
