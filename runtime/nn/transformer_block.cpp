// SPDX-License-Identifier: Apache-2.0
#include "runtime/nn/transformer_block.h"

#include <utility>

#include "runtime/ops/elementwise.h"

namespace lockstep::nn {

TransformerBlock::TransformerBlock(Parts parts)
    : norm_place_(parts.norm_place),
      attention_norm_(take("attention_norm", std::move(parts.attention_norm))),
      attention_(take("attention", std::move(parts.attention))),
      attention_dropout_(parts.dropout > 0 ? &add_module<Dropout>("attention_dropout", parts.dropout) : nullptr),
      feed_forward_norm_(take("feed_forward_norm", std::move(parts.feed_forward_norm))),
      feed_forward_(take("feed_forward", std::move(parts.feed_forward))),
      feed_forward_dropout_(parts.dropout > 0 ? &add_module<Dropout>("feed_forward_dropout", parts.dropout) : nullptr) {
}

template <class Attend>
Tensor TransformerBlock::run(const Tensor& x, Attend attend) {
  const auto dropped = [](Dropout* dropout, const Tensor& y) { return dropout == nullptr ? y : (*dropout)(y); };
  const auto attended = [&](const Tensor& input) {
    return dropped(attention_dropout_, attention_.call(input, attend));
  };
  const auto fed = [&](const Tensor& input) { return dropped(feed_forward_dropout_, feed_forward_(input)); };
  if (norm_place_ == NormPlace::kBehind) {
    const Tensor y = attention_norm_(ops::add(x, attended(x)));
    return feed_forward_norm_(ops::add(y, fed(y)));
  }
  const Tensor y = ops::add(x, attended(attention_norm_(x)));
  return ops::add(y, fed(feed_forward_norm_(y)));
}

Tensor TransformerBlock::forward(const Tensor& x, const Tensor& mask) {
  return run(x, [&](const Tensor& input) { return attention_.forward(input, mask); });
}

Tensor TransformerBlock::forward(const Tensor& x, KeyValues* past) {
  return run(x, [&](const Tensor& input) { return attention_.forward(input, past); });
}

}  // namespace lockstep::nn
