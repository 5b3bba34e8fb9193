// SPDX-License-Identifier: Apache-2.0
#include "model_zoo/bert.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "model_zoo/text_input.h"
#include "model_zoo/transformer_checks.h"
#include "runtime/base/error.h"
#include "runtime/base/option_checks.h"
#include "runtime/nn/checkpoint.h"
#include "runtime/nn/embedding.h"
#include "runtime/nn/feed_forward.h"
#include "runtime/nn/layer_scope.h"
#include "runtime/nn/normalization.h"
#include "runtime/nn/positions.h"
#include "runtime/nn/transformer_block.h"
#include "runtime/ops/compare.h"
#include "runtime/ops/elementwise.h"
#include "runtime/ops/movement.h"
#include "runtime/ops/shape.h"

namespace lockstep::model_zoo {

namespace {

constexpr const char* kBertPath = "model.bert";
constexpr std::int64_t kTokenTypes = 2;

std::unique_ptr<nn::LayerNorm> make_bert_norm(const BertOptions& options,
                                              ops::NormResult result = ops::NormResult::kByPolicy) {
  return std::make_unique<nn::LayerNorm>(Shape{options.width}, nn::NormOptions{.epsilon = options.norm_epsilon},
                                         result);
}

std::unique_ptr<nn::TransformerBlock> make_bert_block(const BertOptions& options) {
  nn::TransformerBlock::Parts parts;
  parts.attention_norm = make_bert_norm(options);
  parts.attention = std::make_unique<nn::MultiHeadAttention>(
      nn::AttentionOptions{.width = options.width, .heads = options.heads, .dropout = options.dropout});
  parts.feed_forward_norm = make_bert_norm(options);
  parts.feed_forward = std::make_unique<nn::FeedForward>(options.width, options.hidden.value_or(4 * options.width),
                                                         nn::FeedForwardOptions{.activation = ops::Activation::kGelu});
  parts.dropout = options.dropout;
  parts.norm_place = nn::NormPlace::kBehind;
  return std::make_unique<nn::TransformerBlock>(std::move(parts));
}

/// All but the head.
class Bert : public nn::Module {
 public:
  Bert(const BertOptions& options, std::int64_t vocabulary)
      : context_(options.context),
        pad_token_(options.pad_token),
        checkpoint_activations_(options.checkpoint_activations),
        token_embedding_(add_module<nn::Embedding>("token_embedding", vocabulary, options.width, pad_token_)),
        position_embedding_(add_module<nn::LearnedPositions>("position_embedding", context_, options.width)),
        token_type_embedding_(add_module<nn::Embedding>("token_type_embedding", kTokenTypes, options.width)),
        embedding_norm_(adopted("embedding_norm", make_bert_norm(options))),
        dropout_(options.dropout > 0 ? &add_module<nn::Dropout>("dropout", options.dropout) : nullptr) {
    for (std::int64_t i = 0; i < options.layers; ++i) {
      blocks_.push_back(&adopted("block" + std::to_string(i), make_bert_block(options)));
    }
  }

 protected:
  template <class M>
  M& adopted(const std::string& name, std::unique_ptr<M> module) {
    M& taken = *module;
    adopt(name, std::move(module));
    return taken;
  }

  nn::Parameter token_weight() const { return token_embedding_.parameters().front(); }

  /// tokens [N, T] -> [N, T, width]
  Tensor encode(const Tensor& tokens) {
    if (tokens.dtype() != DType::kInt64 || tokens.shape().rank() != 2 || tokens.size(1) > context_) {
      throw ShapeError(
          fmt::format("bert of {}: expected int64 [N, T], at most {} tokens a text", describe(tokens), context_));
    }
    Tensor x = embedding_norm_(embed(tokens));
    if (dropout_ != nullptr) x = (*dropout_)(x);
    Tensor mask;
    if (pad_token_) {
      const Tensor seen = ops::ne(ops::cast(tokens, DType::kFloat32), static_cast<double>(*pad_token_));
      mask = ops::reshape(seen, {tokens.size(0), 1, 1, tokens.size(1)});
    }
    for (nn::TransformerBlock* const block : blocks_) {
      const auto attend = [block, mask](const Tensor& input) { return block->forward(input, mask); };
      const auto forward = [block, attend](const Tensor& input) { return block->call(input, attend); };
      x = checkpoint_activations_ ? nn::checkpoint(*block, x, forward) : forward(x);
    }
    return x;
  }

 private:
  Tensor embed(const Tensor& tokens) {
    const Tensor words = token_embedding_(tokens);
    const Tensor type = token_type_embedding_(Tensor::zeros({1}, DType::kInt64, tokens.device()));
    const nn::LayerScope scope(position_embedding_);
    // The small sum first: one pass over the texts.
    return ops::add(words, ops::add(position_embedding_.rows(tokens.size(1)), type));
  }

  std::int64_t context_;
  std::optional<std::int64_t> pad_token_;
  bool checkpoint_activations_;
  nn::Embedding& token_embedding_;
  nn::LearnedPositions& position_embedding_;
  nn::Embedding& token_type_embedding_;
  nn::Module& embedding_norm_;
  nn::Module* dropout_;
  std::vector<nn::TransformerBlock*> blocks_;
};

class MaskedBert : public Bert {
 public:
  MaskedBert(const BertOptions& options, std::int64_t vocabulary)
      : Bert(options, vocabulary),
        transform_(add_module<nn::Linear>("transform", options.width, options.width, true, ops::Activation::kGelu)),
        transform_norm_(adopted("transform_norm", make_bert_norm(options, ops::NormResult::kForProducts))),
        head_(add_module<nn::Linear>("head", token_weight())) {}

  Tensor forward(const Tensor& tokens) override { return head_(transform_norm_(transform_(encode(tokens)))); }

 private:
  nn::Module& transform_;
  nn::Module& transform_norm_;
  nn::Module& head_;
};

class ClassifyingBert : public Bert {
 public:
  ClassifyingBert(const BertOptions& options, std::int64_t vocabulary, std::int64_t outputs)
      : Bert(options, vocabulary),
        pooler_(add_module<nn::Linear>("pooler", options.width, options.width, true, ops::Activation::kTanh)),
        pooler_dropout_(options.dropout > 0 ? &add_module<nn::Dropout>("pooler_dropout", options.dropout) : nullptr),
        classifier_(add_module<nn::Linear>("classifier", options.width, outputs)) {}

  Tensor forward(const Tensor& tokens) override {
    const Tensor pooled = pooler_(ops::select(encode(tokens), 1, 0));
    return classifier_(pooler_dropout_ == nullptr ? pooled : (*pooler_dropout_)(pooled));
  }

 private:
  nn::Module& pooler_;
  nn::Module* pooler_dropout_;
  nn::Module& classifier_;
};

nn::Initializer bert_initializer(const nn::Parameter& parameter, const BertOptions& options) {
  if (parameter.kind == nn::ParameterKind::kBias) return nn::Initializer::constant(0);
  if (parameter.kind != nn::ParameterKind::kWeight) return parameter.initializer;
  return nn::Initializer::normal(options.initial_deviation);
}

}  // namespace

FieldProblems problems_of(const BertOptions& options) {
  FieldChecks checks;
  check_fields(options, checks);
  check_heads(checks, options);
  return checks.problems();
}

std::unique_ptr<nn::Module> make_model(const BertOptions& options, const ModelInput& input) {
  require_none(problems_of(options), kBertPath);
  const bool labels_positions = input.classes > 0 && input.target_shape == input.sample_shape;
  const bool one_target = input.classes == 0 || input.target_shape.rank() == 0;
  if (input.vocabulary == 0 || input.sample_shape.rank() != 1 || !(labels_positions || one_target)) {
    throw FieldError(kBertPath,
                     "needs texts with a label a position, or with one target; the data has " + describe_texts(input));
  }
  const std::int64_t vocabulary = vocabulary_for(input, options.context, options.vocabulary, kBertPath);
  if (options.pad_token.value_or(0) >= vocabulary) {
    throw FieldError(std::string(kBertPath) + ".pad_token",
                     fmt::format("{} is outside the vocabulary of {}", *options.pad_token, vocabulary));
  }
  std::unique_ptr<nn::Module> model;
  if (labels_positions) {
    model = std::make_unique<MaskedBert>(options, vocabulary);
  } else {
    model = std::make_unique<ClassifyingBert>(options, vocabulary, input.outputs);
  }
  model->choose_initializers([&](const nn::Parameter& parameter) { return bert_initializer(parameter, options); });
  return model;
}

}  // namespace lockstep::model_zoo
