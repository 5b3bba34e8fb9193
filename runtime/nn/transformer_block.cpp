// SPDX-License-Identifier: Apache-2.0
#include "runtime/nn/transformer_block.h"

#include <utility>

#include "runtime/nn/layer_scope.h"
#include "runtime/ops/elementwise.h"

namespace lockstep::nn {

TransformerBlock::TransformerBlock(Parts parts)
    : attention_norm_(take("attention_norm", std::move(parts.attention_norm))),
      attention_(take("attention", std::move(parts.attention))),
      attention_dropout_(parts.dropout > 0 ? &add_module<Dropout>("attention_dropout", parts.dropout) : nullptr),
      feed_forward_norm_(take("feed_forward_norm", std::move(parts.feed_forward_norm))),
      feed_forward_(take("feed_forward", std::move(parts.feed_forward))),
      feed_forward_dropout_(parts.dropout > 0 ? &add_module<Dropout>("feed_forward_dropout", parts.dropout) : nullptr) {
}

Tensor TransformerBlock::forward(const Tensor& x, KeyValues* past) {
  const auto dropped = [](Dropout* dropout, const Tensor& y) { return dropout == nullptr ? y : dropout->forward(y); };
  const auto run = [](Module& layer, const Tensor& input) {
    const LayerScope scope(layer);
    return layer.forward(input);
  };
  const Tensor normed = run(attention_norm_, x);
  Tensor attended;
  {
    const LayerScope scope(attention_);
    attended = attention_.forward(normed, past);
  }
  const Tensor y = ops::add(x, dropped(attention_dropout_, attended));
  return ops::add(y, dropped(feed_forward_dropout_, run(feed_forward_, run(feed_forward_norm_, y))));
}

}  // namespace lockstep::nn
