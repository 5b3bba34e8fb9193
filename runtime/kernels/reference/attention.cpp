// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/attention.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/counter_rng.h"
#include "runtime/kernels/geometry/operand_checks.h"
#include "runtime/kernels/reference/families.h"
#include "runtime/kernels/reference/values.h"

namespace lockstep::kernels::reference {

namespace {

/// Calls visit(element) with the first element of each row of each head.
template <class Visit>
void for_each_row_of_heads(const Heads& heads, Visit visit) {
  for (std::int64_t head = 0; head < heads.size(0) * heads.size(1); ++head) {
    for (std::int64_t row = 0; row < heads.size(2); ++row) {
      visit(static_cast<std::size_t>(heads.first_of(head) + row * heads.steps().row));
    }
  }
}

/// The heads' values, one head behind the other.
Values load_heads(const Heads& heads) {
  const Values all = load(heads.tensor());
  if (heads.is_dense()) return all;
  Values values;
  for_each_row_of_heads(heads, [&](std::size_t row) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(row);
    values.insert(values.end(), first, first + static_cast<std::ptrdiff_t>(heads.size(3)));
  });
  return values;
}

void store_heads(const Values& values, const Heads& heads) {
  if (heads.is_dense()) return store(values, heads.tensor());
  Values all = load(heads.tensor());  // beside them lie others
  auto next = values.begin();
  for_each_row_of_heads(heads, [&](std::size_t row) {
    for (std::size_t c = 0; c < static_cast<std::size_t>(heads.size(3)); ++c) all[row + c] = *next++;
  });
  store(all, heads.tensor());
}

/// One row of scores at a time: a query of a head against all keys.
class Scores {
 public:
  Scores(const checks::AttentionExtents& extents, const AttentionScores& scores, const Heads& q, const Heads& k)
      : extents_(extents),
        scores_(scores),
        q_(load_heads(q)),
        k_(load_heads(k)),
        mask_(scores.mask.defined() ? load(scores.mask) : Values()),
        moved_(scores.dropout.key.position != nullptr ? *scores.dropout.key.position : StepPosition{}),
        rng_(scores.dropout.key.seed, CounterRng::Purpose::kDropout, scores.dropout.key.layer,
             scores.dropout.key.step + moved_.step, scores.dropout.key.call),
        row_(static_cast<std::size_t>(extents.keys)) {}

  /// Where row t of head h begins in a tensor of the queries' heads, and the row that it meets in one of the keys'.
  std::size_t of_query(std::int64_t h, std::int64_t t, std::int64_t channels) const {
    return static_cast<std::size_t>((h * extents_.queries + t) * channels);
  }
  std::size_t of_key(std::int64_t h, std::int64_t t, std::int64_t channels) const {
    const std::int64_t kv_head = h / (extents_.heads / extents_.kv_heads);
    return static_cast<std::size_t>((kv_head * extents_.keys + t) * channels);
  }

  double q(std::int64_t h, std::int64_t i, std::size_t c) const { return q_[of_query(h, i, extents_.channels) + c]; }
  double k(std::int64_t h, std::int64_t j, std::size_t c) const { return k_[of_key(h, j, extents_.channels) + c]; }

  const Values& row(std::int64_t h, std::int64_t i) {
    for (std::int64_t j = 0; j < extents_.keys; ++j) {
      double product = 0;
      for (std::size_t c = 0; c < static_cast<std::size_t>(extents_.channels); ++c) product += q(h, i, c) * k(h, j, c);
      row_[static_cast<std::size_t>(j)] = scores_.causal && j > i ? -INFINITY : scores_.scale * product + mask(h, i, j);
    }
    return row_;
  }

  /// The factor by which dropout multiplies the probability of (h, i, j).
  double kept(std::int64_t h, std::int64_t i, std::int64_t j) const {
    const AttentionDropout& dropout = scores_.dropout;
    if (dropout.p == 0) return 1;
    const std::int64_t first = dropout.first_element + moved_.first_sample * dropout.elements_of_sample;
    const std::int64_t number = first + (h * extents_.queries + i) * extents_.keys + j;
    // Compared in float, in which the number is drawn: every backend must keep the same elements.
    const bool keep = rng_.uniform(static_cast<std::uint64_t>(number)) >= static_cast<float>(dropout.p);
    return keep ? 1 / (1 - dropout.p) : 0;
  }

 private:
  double mask(std::int64_t h, std::int64_t i, std::int64_t j) const {
    if (mask_.empty()) return 0;
    const MaskSteps steps(scores_.mask);
    const std::int64_t row = steps.offset(h / extents_.heads, h % extents_.heads) + i * steps.query;
    const double value = mask_[static_cast<std::size_t>(row + j)];
    if (scores_.mask.dtype() != DType::kBool) return value;
    return value != 0 ? 0 : -INFINITY;
  }

  const checks::AttentionExtents& extents_;
  const AttentionScores& scores_;
  Values q_, k_, mask_;
  StepPosition moved_;
  CounterRng rng_;
  Values row_;
};

/// Calls visit(head, query) for every query.
template <class Visit>
void for_each_query(const checks::AttentionExtents& extents, Visit visit) {
  for (std::int64_t h = 0; h < extents.batch * extents.heads; ++h) {
    for (std::int64_t i = 0; i < extents.queries; ++i) visit(h, i);
  }
}

void attention(const Heads& q, const Heads& k, const Heads& v, const AttentionScores& scores, const Heads& out,
               const Tensor& norms) {
  const checks::AttentionExtents extents = checks::attention(q, k, v, scores, out, norms);
  Scores rows(extents, scores, q, k);
  const Values values = load_heads(v);
  Values result(static_cast<std::size_t>(out.numel()), 0.0);
  Values kept_norms;
  for_each_query(extents, [&](std::int64_t h, std::int64_t i) {
    const Values& row = rows.row(h, i);
    const double max = row.empty() ? -INFINITY : std::ranges::max(row);
    const bool blind = max == -INFINITY;
    double sum = 0;
    for (const double score : row) sum += blind ? 0 : std::exp(score - max);
    kept_norms.push_back(blind ? 0 : max);
    kept_norms.push_back(blind ? INFINITY : std::log(sum));
    const std::size_t to = rows.of_query(h, i, extents.value_channels);
    for (std::int64_t j = 0; j < extents.keys; ++j) {
      const double probability =
          rows.kept(h, i, j) * (blind ? 0 : std::exp(row[static_cast<std::size_t>(j)] - max) / sum);
      const std::size_t from = rows.of_key(h, j, extents.value_channels);
      for (std::size_t c = 0; c < static_cast<std::size_t>(extents.value_channels); ++c) {
        result[to + c] += probability * values[from + c];
      }
    }
  });
  store_heads(result, out);
  store(kept_norms, norms);
}

void attention_backward(const Heads& q, const Heads& k, const Heads& v, const AttentionScores& scores, const Heads& out,
                        const Tensor& norms, const Heads& dout, const Heads& dq, const Heads& dk, const Heads& dv) {
  const checks::AttentionExtents extents = checks::attention_backward(q, k, v, scores, out, norms, dout, dq, dk, dv);
  Scores rows(extents, scores, q, k);
  const Values values = load_heads(v), result = load_heads(out), slope = load_heads(dout), kept_norms = load(norms);
  Values of_q(static_cast<std::size_t>(q.numel()), 0.0), of_k(static_cast<std::size_t>(k.numel()), 0.0),
      of_v(static_cast<std::size_t>(v.numel()), 0.0);
  const auto channels = static_cast<std::size_t>(extents.channels);
  const auto value_channels = static_cast<std::size_t>(extents.value_channels);
  for_each_query(extents, [&](std::int64_t h, std::int64_t i) {
    const Values& row = rows.row(h, i);
    const std::size_t norm = rows.of_query(h, i, 2);
    const std::size_t at = rows.of_query(h, i, extents.value_channels);
    double mean = 0;  // of the probabilities' slopes
    for (std::size_t c = 0; c < value_channels; ++c) mean += slope[at + c] * result[at + c];
    for (std::int64_t j = 0; j < extents.keys; ++j) {
      const double probability = std::exp(row[static_cast<std::size_t>(j)] - kept_norms[norm] - kept_norms[norm + 1]);
      const double kept = rows.kept(h, i, j);
      const std::size_t value = rows.of_key(h, j, extents.value_channels);
      double of_probability = 0;
      for (std::size_t c = 0; c < value_channels; ++c) {
        of_probability += slope[at + c] * values[value + c];
        of_v[value + c] += kept * probability * slope[at + c];
      }
      const double of_score = scores.scale * probability * (kept * of_probability - mean);
      for (std::size_t c = 0; c < channels; ++c) {
        of_q[rows.of_query(h, i, extents.channels) + c] += of_score * rows.k(h, j, c);
        of_k[rows.of_key(h, j, extents.channels) + c] += of_score * rows.q(h, i, c);
      }
    }
  });
  if (dq.defined()) store_heads(of_q, dq);
  if (dk.defined()) store_heads(of_k, dk);
  if (dv.defined()) store_heads(of_v, dv);
}

}  // namespace

const Attention kAttention{.attention = attention, .attention_backward = attention_backward};

}  // namespace lockstep::kernels::reference
