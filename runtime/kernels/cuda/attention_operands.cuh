// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cfloat>

#include "runtime/kernels/attention.h"
#include "runtime/kernels/cuda/rows.cuh"
#include "runtime/kernels/functors/dropout.h"
#include "runtime/kernels/functors/fast_exp.h"
#include "runtime/kernels/geometry/operand_checks.h"

// Our own kernels of attention read their operands through these: a head's rows, a query's scores, its dropout, and the
// slopes of its scores.

namespace lockstep::kernels::cuda {

/// A head's rows in memory, `step` elements from one to the next. T is const for those that are read.
template <class T>
struct HeadRows {
  T* data;
  std::int64_t count;
  std::int64_t channels;
  std::int64_t step;

  /// Channel `channel` of row `row`.
  __device__ T* at(std::int64_t row, std::int64_t channel) const { return data + row * step + channel; }
};

/// The rows of all heads.
template <class T>
struct AllHeads {
  T* data;  ///< null: there are none, of a gradient that nobody wants
  std::int64_t count;
  std::int64_t channels;
  HeadSteps steps;
  std::int64_t heads;  ///< of a sample

  __device__ HeadRows<T> of_head(std::int64_t head) const {
    return {data + steps.offset(head, heads), count, channels, steps.row};
  }
};

template <class T>
AllHeads<const T> read_heads(const Heads& heads) {
  return {static_cast<const T*>(heads.data()), heads.size(2), heads.size(3), heads.steps(), heads.size(1)};
}
template <class T>
AllHeads<T> written_heads(const Heads& heads) {
  if (!heads.defined()) return {};
  return {static_cast<T*>(heads.data()), heads.size(2), heads.size(3), heads.steps(), heads.size(1)};
}

/// The scores of a query.
template <class T>
struct QueryScores {
  float scale;
  std::int64_t seen;    ///< keys from here on are not seen
  const bool* allowed;  ///< a mask of bool, by key; null: none
  const T* bias;        ///< a mask that is added, by key; null: none. At most one of the two is given

  __device__ float operator()(std::int64_t key, float product) const {
    if (key >= seen) return -INFINITY;
    if (allowed != nullptr) return allowed[key] ? scale * product : -INFINITY;
    return scale * product + (bias != nullptr ? to_float(bias[key]) : 0.0f);
  }
};

/// Which keys of a query dropout keeps. The mask is made again from dropout's key wherever it is needed.
class KeptKeys {
 public:
  __device__ KeptKeys(const AttentionDropout& dropout, Dropout drop, std::int64_t keys_before) : drop_(drop) {
    if (!(dropout.p > 0)) return;
    StepPosition moved;
    if (dropout.key.position != nullptr) moved = *dropout.key.position;
    rng_ = CounterRng(dropout.key.seed, CounterRng::Purpose::kDropout, dropout.key.layer, dropout.key.step + moved.step,
                      dropout.key.call);
    first_ = static_cast<std::uint64_t>(dropout.first_element + moved.first_sample * dropout.elements_of_sample +
                                        keys_before);
    factor_ = dropout.p < 1 ? drop.factor : 0.0f;
    drops_ = true;
  }

  // Cheap for keys that follow one another: four share a block of random numbers.
  __device__ bool keeps(std::int64_t key) {
    if (!drops_) return true;
    const std::uint64_t element = first_ + static_cast<std::uint64_t>(key);
    if (!has_words_ || element / 4 != block_) {
      block_ = element / 4;
      words_ = rng_.block(block_);
      has_words_ = true;
    }
    return drop_.keeps(word(static_cast<unsigned>(element % 4)));
  }
  /// The key's value after dropout.
  __device__ float operator()(std::int64_t key, float value) { return keeps(key) ? value * factor() : 0.0f; }
  /// Dropout multiplies a kept value by this factor. It is 0 where dropout keeps nothing.
  __device__ float factor() const { return factor_; }

 private:
  /// Without an index that only the run knows: such an array would not lie in registers.
  __device__ std::uint32_t word(unsigned i) const {
    const std::uint32_t even = i == 0 ? words_[0] : words_[2], odd = i == 1 ? words_[1] : words_[3];
    return i % 2 == 0 ? even : odd;
  }

  CounterRng rng_{0, CounterRng::Purpose::kDropout};
  Dropout drop_;
  float factor_ = 1;
  std::uint64_t first_ = 0;  ///< the number of the query's first key
  std::uint64_t block_ = 0;  ///< of words_
  std::array<std::uint32_t, 4> words_ = {};
  bool has_words_ = false;
  bool drops_ = false;
};

/// The inputs that all blocks of a pass read.
template <class T>
struct AttentionOperands {
  AllHeads<const T> q, k, v;
  std::int64_t batch, heads, sharing;  ///< `sharing` heads of q read a head of k and v
  float scale;
  bool causal;
  const bool* allowed;  ///< as in QueryScores, of all queries
  const T* bias;
  MaskSteps steps;
  AttentionDropout dropout;
  Dropout drop;

  __device__ HeadRows<const T> q_of(std::int64_t head) const { return q.of_head(head); }
  __device__ HeadRows<const T> k_of(std::int64_t head) const { return k.of_head(head / sharing); }
  __device__ HeadRows<const T> v_of(std::int64_t head) const { return v.of_head(head / sharing); }
  /// Keys that queries before `end` see.
  __device__ std::int64_t keys_seen_before(std::int64_t end) const { return causal && end < k.count ? end : k.count; }

  /// The scores of a query. A query that does not exist sees no key, so that its scores are -inf.
  __device__ QueryScores<T> scores_of(std::int64_t head, std::int64_t query) const {
    const std::int64_t at = steps.offset(head / heads, head % heads) + query * steps.query;
    return {scale, query < q.count ? keys_seen_before(query + 1) : 0, allowed != nullptr ? allowed + at : nullptr,
            bias != nullptr ? bias + at : nullptr};
  }
  __device__ KeptKeys kept_by(std::int64_t head, std::int64_t query) const {
    return KeptKeys(dropout, drop, (head * q.count + query) * k.count);
  }
};

/// The operands of checked arguments.
template <class T>
AttentionOperands<T> operands_of(const checks::AttentionExtents& extents, const Heads& q, const Heads& k,
                                 const Heads& v, const AttentionScores& scores) {
  const Tensor& mask = scores.mask;
  const bool is_bool = mask.defined() && mask.dtype() == DType::kBool;
  return {.q = read_heads<T>(q),
          .k = read_heads<T>(k),
          .v = read_heads<T>(v),
          .batch = extents.batch,
          .heads = extents.heads,
          .sharing = extents.heads / std::max<std::int64_t>(extents.kv_heads, 1),
          .scale = static_cast<float>(scores.scale),
          .causal = scores.causal,
          .allowed = is_bool ? in<bool>(mask) : nullptr,
          .bias = mask.defined() && !is_bool ? in<T>(mask) : nullptr,
          .steps = mask.defined() ? MaskSteps(mask) : MaskSteps(),
          .dropout = scores.dropout,
          .drop = Dropout(scores.dropout.p)};
}

/// The inputs of the backward pass for each query beside q, by [batch * heads, Tq].
template <class T>
struct Slopes {
  AllHeads<const T> dout;
  const float* norms;
  const float* delta;  ///< sum over channels of dout * out

  struct OfQuery {
    bool exists;
    float max, log_sum, delta;

    /// The probability of a score and the score's slope, given the probability's.
    __device__ void operator()(float score, float of_probability, float& probability, float& slope) const {
      probability = exists ? fast_exp(score - max - log_sum) : 0.0f;
      slope = exists ? probability * (of_probability - delta) : 0.0f;
    }
  };
  __device__ OfQuery of(std::int64_t head, std::int64_t query) const {
    if (query >= dout.count) return {};
    const std::int64_t at = head * dout.count + query;
    return {true, norms[2 * at], norms[2 * at + 1], delta[at]};
  }
};

/// Writes what the backward pass needs of a query: the score by which probabilities are scaled, and log of their sum.
/// A query that sees no key gets 0 and +inf.
__device__ inline void store_norms(float* norms, std::int64_t query, float max, float sum) {
  const bool blind = sum == 0;
  norms[2 * query] = blind ? 0.0f : max;
  norms[2 * query + 1] = blind ? INFINITY : logf(sum);
}

}  // namespace lockstep::kernels::cuda
