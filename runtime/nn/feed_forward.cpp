// SPDX-License-Identifier: Apache-2.0
#include "runtime/nn/feed_forward.h"

#include "runtime/ops/elementwise.h"
#include "runtime/ops/unary.h"

namespace lockstep::nn {

FeedForward::FeedForward(std::int64_t width, std::int64_t hidden, const FeedForwardOptions& options)
    : hidden_(add_module<Linear>("hidden", width, hidden, options.bias, options.activation)),
      dropout_(options.dropout > 0 ? &add_module<Dropout>("dropout", options.dropout) : nullptr),
      output_(add_module<Linear>("output", hidden, width, options.bias)) {}

Tensor FeedForward::forward(const Tensor& x) {
  const Tensor y = hidden_(x);
  return output_(dropout_ == nullptr ? y : (*dropout_)(y));
}

GatedFeedForward::GatedFeedForward(std::int64_t width, std::int64_t hidden, bool bias)
    : gate_(add_module<Linear>("gate", width, hidden, bias)),
      up_(add_module<Linear>("up", width, hidden, bias)),
      output_(add_module<Linear>("output", hidden, width, bias)) {}

Tensor GatedFeedForward::forward(const Tensor& x) { return output_(ops::mul(ops::silu(gate_(x)), up_(x))); }

}  // namespace lockstep::nn
