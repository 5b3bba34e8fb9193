// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "model_zoo/bert_options.h"
#include "model_zoo/model_input.h"
#include "runtime/nn/module.h"

namespace lockstep::model_zoo {

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
