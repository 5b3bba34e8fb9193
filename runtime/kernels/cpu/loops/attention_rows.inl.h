// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cpu/loops/block.inl.h"
#include "runtime/kernels/cpu/loops/elementwise.inl.h"

// Between the products of an attention whose keys a query sees all at once: a row of scores is a query's.

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {
namespace {

/// Products of query and keys as scores: scaled, masked, -inf where the query does not see a key. `room`: for a row.
void score_row(const AttentionHead& head, std::int64_t query, std::int64_t keys, float* row, float* room) {
  constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
  const std::int64_t seen = head.causal ? std::min(keys, query + 1) : keys;
  const std::int64_t at = query * head.mask_step;
  const float scale = head.scale;
  if (head.allowed != nullptr) {
    const bool* const allowed = head.allowed + at;
    LOCKSTEP_VECTORIZE for (std::int64_t j = 0; j < seen; ++j) row[j] = allowed[j] ? scale * row[j] : kMinusInfinity;
  } else if (head.bias.data != nullptr) {
    widen(head.bias.from(at), seen, room);
    LOCKSTEP_VECTORIZE for (std::int64_t j = 0; j < seen; ++j) row[j] = scale * row[j] + room[j];
  } else {
    LOCKSTEP_VECTORIZE for (std::int64_t j = 0; j < seen; ++j) row[j] *= scale;
  }
  std::fill(row + seen, row + keys, kMinusInfinity);
}

/// Dropout of what belongs to a query and its first keys, where it is.
void drop_row(const AttentionHead& head, std::int64_t query, std::int64_t keys, float* row) {
  if (!(head.dropout.p > 0)) return;
  const std::int64_t first = head.dropout.first_element + query * head.keys;
  dropout({row, DType::kFloat32}, head.dropout.p, head.dropout.key, first, {row, DType::kFloat32}, keys);
}

void attention_rows(const AttentionHead& head, const AttentionRows& rows, float* products, Output probabilities,
                    float* norms, float* room) {
  for (std::int64_t i = 0; i < rows.count; ++i) {
    float* const row = products + i * rows.keys;
    score_row(head, rows.first + i, rows.keys, row, room);
    // Not -inf, for which a query that sees no key would give NaN.
    float max = std::numeric_limits<float>::lowest();
#pragma omp simd reduction(max : max)
    for (std::int64_t j = 0; j < rows.keys; ++j) max = row[j] > max ? row[j] : max;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t j = 0; j < rows.keys; ++j) {
      row[j] = fast_exp(row[j] - max);
      sum += row[j];
    }
    const bool blind = sum == 0.0f;
    const float factor = blind ? 0.0f : 1.0f / sum;
    norms[2 * i] = blind ? 0.0f : max;
    norms[2 * i + 1] = blind ? std::numeric_limits<float>::infinity() : std::log(sum);
    drop_row(head, rows.first + i, rows.keys, row);
    scale({row, DType::kFloat32}, factor, probabilities.from(i * rows.keys), rows.keys);
  }
}

void attention_rows_backward(const AttentionHead& head, const AttentionRows& rows, const AttentionRowSlopes& of,
                             float* products, Output probabilities, Output slopes, float* room) {
  const std::int64_t channels = head.value_channels;
  for (std::int64_t i = 0; i < rows.count; ++i) {
    float* const row = products + i * rows.keys;
    float* const slope = of.probabilities + i * rows.keys;
    float* const dout = room + channels;
    widen(of.out.from(i * channels), channels, room);
    widen(of.dout.from(i * channels), channels, dout);
    float delta = 0;
#pragma omp simd reduction(+ : delta)
    for (std::int64_t c = 0; c < channels; ++c) delta += room[c] * dout[c];
    score_row(head, rows.first + i, rows.keys, row, room);
    drop_row(head, rows.first + i, rows.keys, slope);
    const float max = of.norms[2 * i], log_sum = of.norms[2 * i + 1], scale = head.scale;
    LOCKSTEP_VECTORIZE for (std::int64_t j = 0; j < rows.keys; ++j) {
      row[j] = fast_exp(row[j] - max - log_sum);
      slope[j] = scale * (row[j] * (slope[j] - delta));
    }
    drop_row(head, rows.first + i, rows.keys, row);
    narrow(row, rows.keys, probabilities.from(i * rows.keys));
    narrow(slope, rows.keys, slopes.from(i * rows.keys));
  }
}

}  // namespace
}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA
