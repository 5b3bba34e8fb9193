// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/kernels/attention.h"
#include "runtime/kernels/cpu/loops/loops.h"
#include "runtime/kernels/geometry/operand_checks.h"

namespace lockstep::kernels::cpu {

/// Rows of head number `number`, of an output from row `first` on. Undefined heads give null data.
inline InputRows input_rows(const Heads& heads, std::int64_t number) {
  if (!heads.defined()) return {{nullptr, DType::kFloat32}, 0};
  return {{heads.data(number), heads.dtype()}, heads.steps().row};
}
inline OutputRows output_rows(const Heads& heads, std::int64_t number, std::int64_t first = 0) {
  if (!heads.defined()) return {{nullptr, DType::kFloat32}, 0};
  const OutputRows rows{{heads.data(number), heads.dtype()}, heads.steps().row};
  return {rows[first], rows.step};
}

/// The heads of an attention, one by one.
struct AttentionHeads {
  /// Multiply-adds that are worth a thread.
  static constexpr std::int64_t kProductsAThread = std::int64_t{1} << 21;

  const Heads &q, &k, &v;
  const AttentionScores& scores;
  checks::AttentionExtents extents;
  AttentionDropout dropout = here(scores.dropout);

  /// Moved to where the step stands when it runs.
  static AttentionDropout here(AttentionDropout dropout) {
    if (const StepPosition* const position = dropout.key.position) {
      dropout.key.step += position->step;
      dropout.first_element += position->first_sample * dropout.elements_of_sample;
    }
    return dropout;
  }

  std::int64_t count() const { return extents.batch * extents.heads; }
  /// The head of k and v that head `h` reads.
  std::int64_t kv_head(std::int64_t h) const { return h / (extents.heads / extents.kv_heads); }

  AttentionHead operator[](std::int64_t h) const {
    AttentionHead head{
        .q = input_rows(q, h),
        .k = input_rows(k, kv_head(h)),
        .v = input_rows(v, kv_head(h)),
        .queries = extents.queries,
        .keys = extents.keys,
        .channels = extents.channels,
        .value_channels = extents.value_channels,
        .scale = static_cast<float>(scores.scale),
        .causal = scores.causal,
        .allowed = nullptr,
        .bias = {nullptr, DType::kFloat32},
        .mask_step = 0,
        .dropout = dropout,
    };
    head.dropout.first_element += h * extents.queries * extents.keys;
    if (const Tensor& mask = scores.mask; mask.defined()) {
      const MaskSteps steps(mask);
      const std::int64_t first = steps.offset(h / extents.heads, h % extents.heads);
      head.mask_step = steps.query;
      if (mask.dtype() == DType::kBool) {
        head.allowed = static_cast<const bool*>(mask.data()) + first;
      } else {
        head.bias = input(mask).from(first);
      }
    }
    return head;
  }
};

}  // namespace lockstep::kernels::cpu
