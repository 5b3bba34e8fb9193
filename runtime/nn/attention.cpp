// SPDX-License-Identifier: Apache-2.0
#include "runtime/nn/attention.h"

#include <string>
#include <utility>

#include "runtime/autograd/meta.h"
#include "runtime/base/error.h"
#include "runtime/nn/step_context.h"
#include "runtime/ops/ops.h"

namespace lockstep::nn {

namespace {

const AttentionOptions& checked(const AttentionOptions& options) {
  const std::int64_t kv_heads = options.kv_heads.value_or(options.heads);
  const bool fits = options.width >= 1 && options.heads >= 1 && kv_heads >= 1 && options.heads % kv_heads == 0 &&
                    (options.channels ? *options.channels >= 1 : options.width % options.heads == 0);
  if (fits) return options;
  throw ShapeError("attention of width " + std::to_string(options.width) + " cannot have " +
                   std::to_string(options.heads) + " heads, which must divide it, with " + std::to_string(kv_heads) +
                   " of keys and values, which must divide those");
}

/// bool [queries, keys]: a query sees the keys up to its own position, the queries being the last of the keys.
Tensor seen(std::int64_t queries, std::int64_t keys, Device device) {
  const ops::Placement placement{DType::kFloat32, device};
  const Tensor last =
      ops::add(ops::arange(queries, placement).detach({queries, 1}), static_cast<double>(keys - queries));
  return ops::le(ops::arange(keys, placement).detach({1, keys}), last);
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(const AttentionOptions& options)
    : options_(checked(options)),
      channels_(options.channels.value_or(options.width / options.heads)),
      kv_heads_(options.kv_heads.value_or(options.heads)),
      input_(
          add_module<Linear>("input", options.width, (options.heads + 2 * kv_heads_) * channels_, options.input_bias)),
      output_(add_module<Linear>("output", options.heads * channels_, options.width, options.output_bias)) {}

Tensor MultiHeadAttention::forward(const Tensor& x, const Tensor& mask) {
  const ops::AttentionOptions attention = with_dropout({.mask = mask, .causal = options_.causal});
  if (options_.rotary) return attend(heads_of(x, 0), attention);
  return output_(ops::packed_attention(input_(x), options_.heads, kv_heads_, attention));
}

Tensor MultiHeadAttention::forward(const Tensor& x, KeyValues* past) {
  if (past == nullptr) return forward(x);
  const std::int64_t first = past->length();
  Heads heads = heads_of(x, first);
  if (autograd::is_recorded(heads.k)) {
    throw UsageError("attention with past keys and values in a pass that records gradients",
                     "Keep them under autograd::NoGrad.");
  }
  if (first > 0) {
    heads.k = ops::cat({past->keys, heads.k}, 2);
    heads.v = ops::cat({past->values, heads.v}, 2);
  }
  *past = {heads.k, heads.v};
  ops::AttentionOptions attention{.causal = options_.causal && first == 0};
  if (options_.causal && first > 0 && x.size(1) > 1) attention.mask = seen(x.size(1), heads.k.size(2), x.device());
  return attend(heads, with_dropout(attention));
}

MultiHeadAttention::Heads MultiHeadAttention::heads_of(const Tensor& x, std::int64_t first) {
  const std::vector<Tensor> parts = ops::split_heads(input_(x), {options_.heads, kv_heads_, kv_heads_}, channels_);
  Heads heads{parts[0], parts[1], parts[2]};
  if (options_.rotary) {
    heads.q = options_.rotary->apply(heads.q, first);
    heads.k = options_.rotary->apply(heads.k, first);
  }
  return heads;
}

ops::AttentionOptions MultiHeadAttention::with_dropout(ops::AttentionOptions attention) {
  if (draws_random_numbers()) {
    attention.dropout = options_.dropout;
    attention.dropout_key = next_random_key();
    attention.first_sample = StepContext::current().first_sample;
  }
  return attention;
}

Tensor MultiHeadAttention::attend(const Heads& heads, const ops::AttentionOptions& attention) {
  return output_(ops::join_heads({ops::scaled_dot_product_attention(heads.q, heads.k, heads.v, attention)}));
}

}  // namespace lockstep::nn
