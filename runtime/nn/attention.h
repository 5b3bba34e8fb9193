// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "runtime/nn/key_value_cache.h"
#include "runtime/nn/layers.h"
#include "runtime/nn/rotary.h"
#include "runtime/ops/attention.h"

namespace lockstep::nn {

struct AttentionOptions {
  std::int64_t width = 0;                     ///< of the sequence
  std::int64_t heads = 1;                     ///< of the queries
  std::optional<std::int64_t> kv_heads = {};  ///< of keys and values, which divides `heads`; default: `heads`
  std::optional<std::int64_t> channels = {};  ///< of a head; default: width / heads
  bool input_bias = true;                     ///< of the projections to queries, keys and values
  bool output_bias = true;
  bool causal = false;
  double dropout = 0;                            ///< of the attention's probabilities, while training
  std::shared_ptr<RotaryPositions> rotary = {};  ///< turns queries and keys; null: no positions
};

/// Multi-head attention of a sequence to itself, x [N, T, width] -> [N, T, width]: `input` projects to queries, keys
/// and values, whose rows of its weight [(heads + 2 kv_heads) channels, width] lie in this order, head behind head;
/// `output` joins the heads. With fewer kv_heads neighbouring heads of the queries share one (grouped queries).
class MultiHeadAttention : public Module {
 public:
  /// Throws ShapeError for heads that divide nothing.
  explicit MultiHeadAttention(const AttentionOptions& options);
  Tensor forward(const Tensor& x) override { return forward(x, Tensor()); }
  /// `mask` is broadcast to [N, heads, T, T] as ops::AttentionOptions has it: of texts that are filled up, bool
  /// [N, 1, 1, T] says which positions are seen. May be undefined.
  Tensor forward(const Tensor& x, const Tensor& mask);
  /// x goes on from the positions in `past`, which it is added to; null: x is the whole sequence. `past` is for
  /// evaluation: throws UsageError where a gradient would be needed. Then a causal query sees all of the past too.
  Tensor forward(const Tensor& x, KeyValues* past);
  bool draws_random_numbers() const override { return training() && options_.dropout > 0; }

 private:
  struct Heads {
    Tensor q, k, v;  ///< [N, heads or kv_heads, T, channels]
  };
  /// The heads of x, whose first position is number `first` of the sequence.
  Heads heads_of(const Tensor& x, std::int64_t first);
  /// With the dropout of this call, while training.
  ops::AttentionOptions with_dropout(ops::AttentionOptions attention);
  Tensor attend(const Heads& heads, const ops::AttentionOptions& attention);

  AttentionOptions options_;
  std::int64_t channels_;
  std::int64_t kv_heads_;
  Linear& input_;
  Linear& output_;
};

}  // namespace lockstep::nn
