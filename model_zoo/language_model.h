// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/nn/key_value_cache.h"
#include "runtime/nn/module.h"

namespace lockstep::model_zoo {

/// A model that tells of each position of a text which token comes next.
class LanguageModel : public nn::Module {
 public:
  /// tokens int64 [N, T] -> logits [N, T, vocabulary], T at most the context. Throws ShapeError beyond it.
  Tensor forward(const Tensor& tokens) override { return forward(tokens, nullptr); }
  /// Returns the logits of tokens that follow those in `cache`, and adds these tokens to it. To rounding they are the
  /// logits that the whole text gives, at the cost of these tokens alone. Null: tokens are the whole text. For
  /// evaluation: throws UsageError where a gradient would be needed.
  virtual Tensor forward(const Tensor& tokens, nn::KeyValueCache* cache) = 0;

  /// The longest text.
  virtual std::int64_t context() const = 0;
  /// Logits a position.
  virtual std::int64_t vocabulary() const = 0;
};

/// model.forward(tokens, cache) at the opt level that amp::initialize gave it: nn::forward().
Tensor forward(LanguageModel& model, const Tensor& tokens, nn::KeyValueCache& cache);

}  // namespace lockstep::model_zoo
