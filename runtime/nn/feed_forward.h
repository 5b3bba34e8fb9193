// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/nn/layers.h"

namespace lockstep::nn {

struct FeedForwardOptions {
  ops::Activation activation = ops::Activation::kGeluTanh;
  bool bias = true;
  double dropout = 0;  ///< of what the activation gives
};

/// output(dropout(activation(hidden(x)))): [..., width] -> [..., width].
class FeedForward : public Module {
 public:
  FeedForward(std::int64_t width, std::int64_t hidden, const FeedForwardOptions& options = {});
  Tensor forward(const Tensor& x) override;

 private:
  Linear& hidden_;
  Dropout* dropout_;
  Linear& output_;
};

/// SwiGLU: output(silu(gate(x)) * up(x)), without biases unless asked for. (Shazeer: "GLU Variants Improve
/// Transformer", 2020.)
class GatedFeedForward : public Module {
 public:
  GatedFeedForward(std::int64_t width, std::int64_t hidden, bool bias = false);
  Tensor forward(const Tensor& x) override;

 private:
  Linear& gate_;
  Linear& up_;
  Linear& output_;
};

}  // namespace lockstep::nn
