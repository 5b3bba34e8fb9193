// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "runtime/nn/attention.h"

namespace lockstep::nn {

/// The place where a block of a transformer normalises.
enum class NormPlace {
  kBefore,  ///< inputs of attention and feed-forward layer: y = x + attention(norm(x)), y + feed_forward(norm(y))
  kBehind,  ///< the sums: y = norm(x + attention(x)), norm(y + feed_forward(y))
};

/// The block of a transformer, x [N, T, width] -> [N, T, width]. Dropout acts on what is added. Its parts are
/// attention_norm, attention, feed_forward_norm and feed_forward.
class TransformerBlock : public Module {
 public:
  struct Parts {
    std::unique_ptr<Module> attention_norm;
    std::unique_ptr<MultiHeadAttention> attention;
    std::unique_ptr<Module> feed_forward_norm;
    std::unique_ptr<Module> feed_forward;
    double dropout = 0;
    NormPlace norm_place = NormPlace::kBefore;
  };
  explicit TransformerBlock(Parts parts);
  Tensor forward(const Tensor& x) override { return forward(x, Tensor()); }
  // The arguments are those of MultiHeadAttention::forward().
  Tensor forward(const Tensor& x, const Tensor& mask);
  Tensor forward(const Tensor& x, KeyValues* past);

 private:
  template <class M>
  M& take(const char* name, std::unique_ptr<M> part) {
    M& taken = *part;
    adopt(name, std::move(part));
    return taken;
  }

  /// `attend` computes the attention of its argument.
  template <class Attend>
  Tensor run(const Tensor& x, Attend attend);

  NormPlace norm_place_;
  Module& attention_norm_;
  MultiHeadAttention& attention_;
  Dropout* attention_dropout_;
  Module& feed_forward_norm_;
  Module& feed_forward_;
  Dropout* feed_forward_dropout_;
};

}  // namespace lockstep::nn
