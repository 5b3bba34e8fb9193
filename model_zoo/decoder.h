// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "model_zoo/language_model.h"
#include "runtime/nn/positions.h"
#include "runtime/nn/transformer_block.h"

namespace lockstep::model_zoo {

/// The sizes and layers of a Decoder.
struct DecoderParts {
  std::int64_t vocabulary = 0;
  std::int64_t width = 0;
  std::int64_t context = 0;
  bool learned_positions = false;  ///< added to the tokens; otherwise the blocks know positions, or nobody
  double dropout = 0;              ///< of the embeddings
  std::vector<std::unique_ptr<nn::TransformerBlock>> blocks;
  std::unique_ptr<nn::Module> norm;  ///< behind the last block
  bool tied_head = true;             ///< the head's weight is the embedding's: one parameter
  bool checkpoint_activations = false;
};

/// Embedding, causal transformer blocks, norm, head: what GPT and Llama have in common. Its parameters are
/// token_embedding.weight, position_embedding.weight, block0..., norm..., and head.weight where that is not tied.
class Decoder : public LanguageModel {
 public:
  explicit Decoder(DecoderParts parts);
  using LanguageModel::forward;
  Tensor forward(const Tensor& tokens, nn::KeyValueCache* cache) override;

  std::int64_t context() const override { return context_; }
  std::int64_t vocabulary() const override { return vocabulary_; }

 private:
  std::int64_t context_;
  std::int64_t vocabulary_;
  bool checkpoint_activations_;
  nn::Module* token_embedding_ = nullptr;
  nn::LearnedPositions* position_embedding_ = nullptr;
  nn::Module* dropout_ = nullptr;
  std::vector<nn::TransformerBlock*> blocks_;
  nn::Module* norm_ = nullptr;
  nn::Module* head_ = nullptr;
};

}  // namespace lockstep::model_zoo
