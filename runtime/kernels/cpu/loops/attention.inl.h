// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cpu/loops/block.inl.h"
#include "runtime/kernels/cpu/loops/elementwise.inl.h"
#include "runtime/kernels/cpu/loops/products.inl.h"

// Attention of one head, a block of queries against a block of keys at a time. Queries lie in the lanes: scores are
// [keys, queries] and results [channels, queries], so that maxima and sums over keys need no sum within a register, and
// keys and values are read as they lie in memory. One product, multiply_matrices(), serves all passes.

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {
namespace {

constexpr std::int64_t kQueries = AttentionHead::kQueries;
constexpr std::int64_t kKeys = AttentionHead::kKeys;

std::int64_t padded(std::int64_t columns) { return (columns + kColumnUnit - 1) / kColumnUnit * kColumnUnit; }

/// Rows of an input as float32, one behind the other: where they lie, or brought into `buffer`. Rows that lie apart are
/// copied: a step that is a multiple of 4096 bytes would have them evict each other from the first-level cache.
const float* rows_of(const InputRows& in, std::int64_t first, std::int64_t rows, std::int64_t channels, float* buffer) {
  if (in.step == channels) {
    const Input from = in[first];
    if (from.dtype == DType::kFloat32) return static_cast<const float*>(from.data);
    widen(from, rows * channels, buffer);
    return buffer;
  }
  for (std::int64_t r = 0; r < rows; ++r) widen(in[first + r], channels, buffer + r * channels);
  return buffer;
}

/// to[c * kQueries + i] = factor * rows[i * channels + c], and 0 for the lanes behind the last row.
void transpose_into(const float* rows, std::int64_t count, std::int64_t channels, float factor, float* to) {
  const std::int64_t lanes = padded(count);
  for (std::int64_t c = 0; c < channels; ++c) {
    float* const lane = to + c * kQueries;
    for (std::int64_t i = 0; i < count; ++i) lane[i] = factor * rows[i * channels + c];
    for (std::int64_t i = count; i < lanes; ++i) lane[i] = 0.0f;
  }
}

/// The rows back in their dtype: out[i, c] = factors[i] * from[c * kQueries + i], from row `first` of out on.
void transpose_out(const float* from, std::int64_t count, std::int64_t channels, const float* factors,
                   const OutputRows& out, std::int64_t first, float* buffer) {
  const bool is_wide = out.data.dtype == DType::kFloat32;
  for (std::int64_t i = 0; i < count; ++i) {
    float* const row = is_wide ? static_cast<float*>(out[first + i].data) : buffer + i * channels;
    for (std::int64_t c = 0; c < channels; ++c) row[c] = factors[i] * from[c * kQueries + i];
  }
  if (is_wide) return;
  if (out.step == channels) return narrow(buffer, count * channels, out[first]);
  for (std::int64_t i = 0; i < count; ++i) narrow(buffer + i * channels, channels, out[first + i]);
}

/// Copies of rows whose columns are padded with zeros.
void pad_rows(const float* rows, std::int64_t count, std::int64_t channels, float factor, float* to) {
  const std::int64_t width = padded(channels);
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t c = 0; c < channels; ++c) to[i * width + c] = factor * rows[i * channels + c];
    for (std::int64_t c = channels; c < width; ++c) to[i * width + c] = 0.0f;
  }
}

/// A block of scores: queries [first_query, + queries) against keys [first_key, + keys).
struct ScoreBlock {
  std::int64_t first_query;
  std::int64_t queries;
  std::int64_t first_key;
  std::int64_t keys;
};

/// Adds the mask to scores [keys, kQueries], and -inf where a query does not see a key.
void mask_scores(const AttentionHead& head, const ScoreBlock& block, float* scores) {
  constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
  if (head.allowed != nullptr || head.bias.data != nullptr) {
    float row[kKeys];
    for (std::int64_t i = 0; i < block.queries; ++i) {
      const std::int64_t at = (block.first_query + i) * head.mask_step + block.first_key;
      if (i == 0 || head.mask_step != 0) {
        if (head.allowed != nullptr) {
          for (std::int64_t j = 0; j < block.keys; ++j) row[j] = head.allowed[at + j] ? 0.0f : kMinusInfinity;
        } else {
          widen(head.bias.from(at), block.keys, row);
        }
      }
      for (std::int64_t j = 0; j < block.keys; ++j) scores[j * kQueries + i] += row[j];
    }
  }
  if (!head.causal) return;
  // Key j is hidden from the queries before it.
  for (std::int64_t j = std::max<std::int64_t>(0, block.first_query + 1 - block.first_key); j < block.keys; ++j) {
    const std::int64_t hidden = std::min(block.queries, block.first_key + j - block.first_query);
    std::fill_n(scores + j * kQueries, hidden, kMinusInfinity);
  }
}

/// Writes the factors by which dropout multiplies the probabilities of a block, as [keys, kQueries]. Lanes beyond the
/// block's queries stay as they are.
void dropout_factors(const AttentionHead& head, const ScoreBlock& block, float* factors) {
  float ones[kKeys], row[kKeys];
  std::fill_n(ones, kKeys, 1.0f);
  for (std::int64_t i = 0; i < block.queries; ++i) {
    const std::int64_t first = head.dropout.first_element + (block.first_query + i) * head.keys + block.first_key;
    dropout({ones, DType::kFloat32}, head.dropout.p, head.dropout.key, first, {row, DType::kFloat32}, block.keys);
    for (std::int64_t j = 0; j < block.keys; ++j) factors[j * kQueries + i] = row[j];
  }
}

void multiply_block(const ScoreBlock& block, const float* factors, float* values) {
  const std::int64_t n = block.keys * kQueries;
  LOCKSTEP_VECTORIZE for (std::int64_t i = 0; i < n; ++i) values[i] *= factors[i];
}

/// Calls f(block) for the blocks of keys that the queries see.
template <class F>
void for_each_key_block(const AttentionHead& head, std::int64_t first_query, std::int64_t queries, F f) {
  const std::int64_t seen = head.causal ? std::min(head.keys, first_query + queries) : head.keys;
  for (std::int64_t first = 0; first < seen; first += kKeys) {
    f(ScoreBlock{first_query, queries, first, std::min(kKeys, seen - first)});
  }
}

/// Pieces of the caller's scratch memory, one behind the other.
class Pieces {
 public:
  explicit Pieces(float* from) : next_(from) {}
  float* take(std::int64_t floats) {
    float* const piece = next_;
    next_ += padded(floats);
    return piece;
  }

 private:
  float* next_;
};

void attention(const AttentionHead& head, std::int64_t first, std::int64_t count, OutputRows out, float* norms,
               float* scratch) {
  const std::int64_t d = head.channels;
  const std::int64_t dv = head.value_channels;
  const std::int64_t lanes = padded(count);
  Pieces pieces(scratch);
  float* const queries = pieces.take(d * kQueries);
  float* const sums = pieces.take(dv * kQueries);
  float* const scores = pieces.take(kKeys * kQueries);
  float* const factors = pieces.take(kKeys * kQueries);
  float* const wide_keys = pieces.take(std::max(kKeys, kQueries) * d);
  float* const wide_values = pieces.take(std::max(kKeys, kQueries) * dv);
  const bool drops = head.dropout.p > 0;
  if (drops) std::fill_n(factors, kKeys * kQueries, 1.0f);
  transpose_into(rows_of(head.q, first, count, d, wide_keys), count, d, head.scale, queries);

  alignas(64) float max[kQueries], sum[kQueries], next[kQueries], factor[kQueries];
  // Not -inf, for which a query whose first keys are masked would give NaN.
  std::fill_n(max, lanes, std::numeric_limits<float>::lowest());
  std::fill_n(sum, lanes, 0.0f);
  std::fill_n(sums, dv * kQueries, 0.0f);
  for_each_key_block(head, first, count, [&](const ScoreBlock& block) {
    const float* const keys = rows_of(head.k, block.first_key, block.keys, d, wide_keys);
    multiply_matrices(false, block.keys, lanes, d, {keys, d, 1}, queries, kQueries, scores, kQueries);
    mask_scores(head, block, scores);
    std::copy_n(max, lanes, next);
    for (std::int64_t j = 0; j < block.keys; ++j) {
      const float* const of_key = scores + j * kQueries;
      LOCKSTEP_VECTORIZE for (std::int64_t i = 0; i < lanes; ++i) next[i] = of_key[i] > next[i] ? of_key[i] : next[i];
    }
    LOCKSTEP_VECTORIZE for (std::int64_t i = 0; i < lanes; ++i) {
      factor[i] = fast_exp(max[i] - next[i]);
      max[i] = next[i];
      sum[i] *= factor[i];
    }
    for (std::int64_t j = 0; j < block.keys; ++j) {
      float* const of_key = scores + j * kQueries;
      LOCKSTEP_VECTORIZE for (std::int64_t i = 0; i < lanes; ++i) {
        of_key[i] = fast_exp(of_key[i] - max[i]);
        sum[i] += of_key[i];
      }
    }
    for (std::int64_t c = 0; c < dv; ++c) {
      float* const of_channel = sums + c * kQueries;
      LOCKSTEP_VECTORIZE for (std::int64_t i = 0; i < lanes; ++i) of_channel[i] *= factor[i];
    }
    if (drops) {
      dropout_factors(head, block, factors);
      multiply_block(block, factors, scores);
    }
    const float* const values = rows_of(head.v, block.first_key, block.keys, dv, wide_values);
    multiply_matrices(true, dv, lanes, block.keys, {values, 1, dv}, scores, kQueries, sums, kQueries);
  });

  for (std::int64_t i = 0; i < count; ++i) {
    const bool blind = sum[i] == 0.0f;
    factor[i] = blind ? 0.0f : 1.0f / sum[i];
    norms[2 * i] = blind ? 0.0f : max[i];
    norms[2 * i + 1] = blind ? std::numeric_limits<float>::infinity() : std::log(sum[i]);
  }
  transpose_out(sums, count, dv, factor, out, 0, wide_values);
}

/// The sum over channels of a * b, for each row.
void multiply_rows(const float* a, const float* b, std::int64_t count, std::int64_t channels, float* sums) {
  for (std::int64_t i = 0; i < count; ++i) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t c = 0; c < channels; ++c) sum += a[i * channels + c] * b[i * channels + c];
    sums[i] = sum;
  }
}

void attention_backward(const AttentionHead& head, const AttentionGradients& gradients, float* scratch) {
  const std::int64_t d = head.channels;
  const std::int64_t dv = head.value_channels;
  Pieces pieces(scratch);
  float* const queries = pieces.take(d * kQueries);
  float* const query_rows = pieces.take(kQueries * padded(d));
  float* const slopes = pieces.take(dv * kQueries);
  float* const slope_rows = pieces.take(kQueries * padded(dv));
  float* const query_slopes = pieces.take(d * kQueries);
  float* const scores = pieces.take(kKeys * kQueries);
  float* const score_slopes = pieces.take(kKeys * kQueries);
  float* const factors = pieces.take(kKeys * kQueries);
  float* const wide_keys = pieces.take(std::max(kKeys, kQueries) * d);
  float* const wide_values = pieces.take(std::max(kKeys, kQueries) * dv);
  float* const wide_out = pieces.take(kQueries * dv);
  alignas(64) float delta[kQueries], max[kQueries], log_sum[kQueries], scales[kQueries];
  std::fill_n(scales, kQueries, head.scale);
  const bool drops = head.dropout.p > 0;
  if (drops) std::fill_n(factors, kKeys * kQueries, 1.0f);

  for (std::int64_t first = 0; first < head.queries; first += kQueries) {
    const std::int64_t count = std::min(kQueries, head.queries - first);
    const std::int64_t lanes = padded(count);
    const float* rows = rows_of(head.q, first, count, d, wide_keys);
    transpose_into(rows, count, d, head.scale, queries);
    pad_rows(rows, count, d, head.scale, query_rows);
    rows = rows_of(gradients.dout, first, count, dv, wide_values);
    transpose_into(rows, count, dv, 1.0f, slopes);
    pad_rows(rows, count, dv, 1.0f, slope_rows);
    multiply_rows(rows, rows_of(gradients.out, first, count, dv, wide_out), count, dv, delta);
    for (std::int64_t i = 0; i < count; ++i) {
      max[i] = gradients.norms[2 * (first + i)];
      log_sum[i] = gradients.norms[2 * (first + i) + 1];
    }
    // Lanes without a query have probability 0.
    std::fill(max + count, max + lanes, 0.0f);
    std::fill(log_sum + count, log_sum + lanes, std::numeric_limits<float>::infinity());
    std::fill(delta + count, delta + lanes, 0.0f);
    std::fill_n(query_slopes, d * kQueries, 0.0f);

    for_each_key_block(head, first, count, [&](const ScoreBlock& block) {
      const float* const keys = rows_of(head.k, block.first_key, block.keys, d, wide_keys);
      const float* const values = rows_of(head.v, block.first_key, block.keys, dv, wide_values);
      multiply_matrices(false, block.keys, lanes, d, {keys, d, 1}, queries, kQueries, scores, kQueries);
      mask_scores(head, block, scores);
      multiply_matrices(false, block.keys, lanes, dv, {values, dv, 1}, slopes, kQueries, score_slopes, kQueries);
      if (drops) {
        dropout_factors(head, block, factors);
        multiply_block(block, factors, score_slopes);
      }
      for (std::int64_t j = 0; j < block.keys; ++j) {
        float* const of_key = scores + j * kQueries;
        float* const slope = score_slopes + j * kQueries;
        LOCKSTEP_VECTORIZE for (std::int64_t i = 0; i < lanes; ++i) {
          of_key[i] = fast_exp(of_key[i] - max[i] - log_sum[i]);
          slope[i] = of_key[i] * (slope[i] - delta[i]);
        }
      }
      if (drops) multiply_block(block, factors, scores);
      if (gradients.dv != nullptr) {
        multiply_matrices(true, block.keys, padded(dv), count, {scores, kQueries, 1}, slope_rows, padded(dv),
                          gradients.dv + block.first_key * padded(dv), padded(dv));
      }
      if (gradients.dk != nullptr) {
        multiply_matrices(true, block.keys, padded(d), count, {score_slopes, kQueries, 1}, query_rows, padded(d),
                          gradients.dk + block.first_key * padded(d), padded(d));
      }
      if (gradients.dq.data.data != nullptr) {
        multiply_matrices(true, d, lanes, block.keys, {keys, 1, d}, score_slopes, kQueries, query_slopes, kQueries);
      }
    });
    if (gradients.dq.data.data != nullptr) {
      transpose_out(query_slopes, count, d, scales, gradients.dq, first, wide_keys);
    }
  }
}

}  // namespace
}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA
