// SPDX-License-Identifier: Apache-2.0
#include "model_zoo/decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/nn/checkpoint.h"
#include "runtime/nn/embedding.h"
#include "runtime/nn/forward.h"
#include "runtime/nn/layer_scope.h"
#include "runtime/tensor/error.h"

namespace lockstep::model_zoo {

namespace {

template <class Run>
Tensor within(const nn::Module& layer, Run run) {
  const nn::LayerScope scope(layer);
  return run();
}

}  // namespace

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
  Tensor x = within(*token_embedding_, [&] { return token_embedding_->forward(tokens); });
  if (position_embedding_ != nullptr) {
    x = within(*position_embedding_, [&] { return position_embedding_->forward(x, first); });
  }
  if (dropout_ != nullptr) x = within(*dropout_, [&] { return dropout_->forward(x); });
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    nn::TransformerBlock& block = *blocks_[i];
    x = within(block, [&] {
      if (cache != nullptr) return block.forward(x, &cache->layers[i]);
      return checkpoint_activations_ ? nn::checkpoint(block, x) : block.forward(x);
    });
  }
  x = within(*norm_, [&] { return norm_->forward(x); });
  return within(*head_, [&] { return head_->forward(x); });
}

Tensor forward(LanguageModel& model, const Tensor& tokens, nn::KeyValueCache& cache) {
  return nn::forward(model, tokens, [&](const Tensor& input) { return model.forward(input, &cache); });
}

std::int64_t vocabulary_for(const ModelInput& input, std::int64_t context, std::optional<std::int64_t> vocabulary,
                            const std::string& path) {
  if (input.vocabulary == 0 || input.sample_shape.rank() != 1 || input.target_shape != input.sample_shape) {
    throw FieldError(path, fmt::format("needs texts with a label a position; the data has {} {} with targets {}",
                                       input.vocabulary > 0 ? "tokens" : "numbers", input.sample_shape.str(),
                                       input.target_shape.str()));
  }
  if (input.sample_shape[0] > context) {
    throw FieldError(path + ".context",
                     fmt::format("{} is shorter than the data's texts: {}", context, input.sample_shape[0]));
  }
  const std::int64_t needed = std::max(input.vocabulary, input.outputs);
  if (vocabulary.value_or(needed) < needed) {
    throw FieldError(path + ".vocabulary",
                     fmt::format("{} are fewer tokens than the data has: {}", *vocabulary, needed),
                     "Leave vocabulary out, and the model fits itself to the data.");
  }
  return vocabulary.value_or(needed);
}

}  // namespace lockstep::model_zoo
