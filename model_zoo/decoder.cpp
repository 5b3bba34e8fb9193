// SPDX-License-Identifier: Apache-2.0
#include "model_zoo/decoder.h"

#include <fmt/format.h>

#include <utility>

#include "runtime/base/error.h"
#include "runtime/nn/checkpoint.h"
#include "runtime/nn/embedding.h"
#include "runtime/nn/forward.h"

namespace lockstep::model_zoo {

Decoder::Decoder(DecoderParts parts)
    : context_(parts.context), vocabulary_(parts.vocabulary), checkpoint_activations_(parts.checkpoint_activations) {
  token_embedding_ = &add_module<nn::Embedding>("token_embedding", vocabulary_, parts.width);
  if (parts.learned_positions) {
    position_embedding_ = &add_module<nn::LearnedPositions>("position_embedding", context_, parts.width);
  }
  if (parts.dropout > 0) dropout_ = &add_module<nn::Dropout>("dropout", parts.dropout);
  for (std::unique_ptr<nn::TransformerBlock>& block : parts.blocks) {
    const std::string name = "block" + std::to_string(blocks_.size());
    blocks_.push_back(block.get());
    adopt(name, std::move(block));
  }
  norm_ = parts.norm.get();
  adopt("norm", std::move(parts.norm));
  if (parts.tied_head) {
    head_ = &add_module<nn::Linear>("head", token_embedding_->parameters().front(), false);
  } else {
    head_ = &add_module<nn::Linear>("head", parts.width, vocabulary_, false);
  }
}

Tensor Decoder::forward(const Tensor& tokens, nn::KeyValueCache* cache) {
  const std::int64_t first = cache == nullptr ? 0 : cache->length();
  if (tokens.dtype() != DType::kInt64 || tokens.shape().rank() != 2 || first + tokens.size(1) > context_) {
    throw ShapeError(fmt::format("a language model of {}{}: expected int64 [N, T], at most {} tokens a text",
                                 describe(tokens), first == 0 ? "" : fmt::format(" behind {} tokens", first),
                                 context_));
  }
  if (cache != nullptr) cache->layers.resize(blocks_.size());
  Tensor x = (*token_embedding_)(tokens);
  if (position_embedding_ != nullptr) {
    x = position_embedding_->call(x, [&](const Tensor& input) { return position_embedding_->forward(input, first); });
  }
  if (dropout_ != nullptr) x = (*dropout_)(x);
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    nn::TransformerBlock& block = *blocks_[i];
    if (cache != nullptr) {
      x = block.call(x, [&](const Tensor& input) { return block.forward(input, &cache->layers[i]); });
    } else {
      x = checkpoint_activations_ ? nn::checkpoint(block, x) : block(x);
    }
  }
  return (*head_)((*norm_)(x));
}

Tensor forward(LanguageModel& model, const Tensor& tokens, nn::KeyValueCache& cache) {
  return nn::forward(model, tokens, [&](const Tensor& input) { return model.forward(input, &cache); });
}

}  // namespace lockstep::model_zoo
