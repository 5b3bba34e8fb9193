// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cpu/loops/dim_reductions.inl.h"

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {
namespace {

void sum_picked(Input x, const std::int64_t* places, std::int64_t count, std::int64_t all, std::int64_t n,
                float* sums) {
  // The lines lie anywhere: they are asked for so many lines before they are added.
  constexpr std::int64_t kAhead = 4;
  visit_format(x.dtype, [&]<class Format>(Format) {
    for_each_column_group(n, [&](auto vectors, std::int64_t column, auto live) {
      constexpr int kVectors = decltype(vectors)::value;
      const auto* const from = elements<Format>(x) + column;
      Lanes sum[kVectors];
      for (Lanes& each : sum) each = broadcast(-0.0f);  // which leaves every number what it is
      for (std::int64_t k = 0; k < count; ++k) {
        const auto* const line = from + places[k] * n;
        const auto* const ahead = from + places[std::min(k + kAhead, all - 1)] * n;
        for (int v = 0; v < kVectors; ++v) {
          sum[v] += load_live<Format>(line + v * kLanes, live);
          __builtin_prefetch(ahead + v * kLanes);
        }
      }
      for (int v = 0; v < kVectors; ++v) {
        if (live == kLanes) {
          store_float(sums + column + v * kLanes, sum[v]);
        } else {
          float part[kLanes];
          store_float(part, sum[v]);
          std::copy_n(part, std::int64_t{live}, sums + column);
        }
      }
    });
  });
}

}  // namespace
}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA
