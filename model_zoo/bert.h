// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "model_zoo/model_input.h"
#include "runtime/base/field_checks.h"
#include "runtime/base/option_fields.h"
#include "runtime/nn/module.h"

namespace lockstep::model_zoo {

/// The defaults are BERT's base size, of 110 million parameters. (Devlin et al.: "BERT: Pre-training of Deep
/// Bidirectional Transformers for Language Understanding", NAACL 2019, arXiv 1810.04805.)
struct BertOptions {
  std::int64_t layers = 12;
  std::int64_t heads = 12;
  std::int64_t width = 768;                     ///< a multiple of heads
  std::optional<std::int64_t> hidden = {};      ///< width of a feed-forward layer; default: 4 width
  std::int64_t context = 512;                   ///< the longest text
  std::optional<std::int64_t> vocabulary = {};  ///< default: the data's; a larger one leaves tokens unused
  double dropout = 0.1;                         ///< of embeddings, attention and what blocks add; in [0, 1)
  double norm_epsilon = 1e-12;
  double initial_deviation = 0.02;             ///< of weights
  std::optional<std::int64_t> pad_token = {};  ///< fills texts up: attention does not see it
  bool checkpoint_activations = false;         ///< of blocks: nn::checkpoint()

  static constexpr std::string_view kKind = "bert";  ///< its name in a job
  static constexpr auto fields() {
    return std::tuple(
        option("layers", &BertOptions::layers, kAtLeastOne), option("heads", &BertOptions::heads, kAtLeastOne),
        option("width", &BertOptions::width, kAtLeastOne), option("hidden", &BertOptions::hidden, kAtLeastOne),
        option("context", &BertOptions::context, kAtLeastOne),
        option("vocabulary", &BertOptions::vocabulary, kAtLeastOne),
        option("dropout", &BertOptions::dropout, kFraction),
        option("norm_epsilon", &BertOptions::norm_epsilon, kPositive),
        option("initial_deviation", &BertOptions::initial_deviation, kNotNegative),
        option("pad_token", &BertOptions::pad_token, kNotNegative),
        option("checkpoint_activations", &BertOptions::checkpoint_activations));
  }
  bool operator==(const BertOptions&) const = default;
};

/// All that is wrong with the options, by the names of the job's fields.
FieldProblems problems_of(const BertOptions& options);

/// BERT, as Hugging Face's transformers have it: embeddings of tokens, positions and token types, all tokens being of
/// type 0, their norm, post-norm blocks with exact GELU that see the whole text, and a head that the data choose:
///
///   a label a position   int64 [N, T] -> logits [N, T, vocabulary] of masked tokens: a layer with GELU and norm, and
///                        a product with the embedding's own weight (one parameter) and a bias
///   one target a text    int64 [N, T] -> [N, outputs]: a layer with tanh of the first position, dropout, classifier
///
/// Its parameters are token_embedding, position_embedding, token_type_embedding, embedding_norm and block0...; then
/// transform, transform_norm and head, or pooler and classifier. Throws FieldError for options without a meaning, and
/// for data that is no text or does not fit.
std::unique_ptr<nn::Module> make_model(const BertOptions& options, const ModelInput& input);

}  // namespace lockstep::model_zoo
