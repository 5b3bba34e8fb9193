// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "runtime/nn/attention.h"

namespace lockstep::nn {

/// The pre-norm block of a transformer, x [N, T, width] -> [N, T, width]: x plus the attention of its norm, then plus
/// the feed-forward layer of the sum's norm. Dropout acts on what is added. Its parts are attention_norm, attention,
/// feed_forward_norm and feed_forward.
class TransformerBlock : public Module {
 public:
  struct Parts {
    std::unique_ptr<Module> attention_norm;
    std::unique_ptr<MultiHeadAttention> attention;
    std::unique_ptr<Module> feed_forward_norm;
    std::unique_ptr<Module> feed_forward;
    double dropout = 0;
  };
  explicit TransformerBlock(Parts parts);
  Tensor forward(const Tensor& x) override { return forward(x, nullptr); }
  /// As MultiHeadAttention::forward().
  Tensor forward(const Tensor& x, KeyValues* past);

 private:
  template <class M>
  M& take(const char* name, std::unique_ptr<M> part) {
    M& taken = *part;
    adopt(name, std::move(part));
    return taken;
  }

  Module& attention_norm_;
  MultiHeadAttention& attention_;
  Dropout* attention_dropout_;
  Module& feed_forward_norm_;
  Module& feed_forward_;
  Dropout* feed_forward_dropout_;
};

}  // namespace lockstep::nn
