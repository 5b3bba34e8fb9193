// SPDX-License-Identifier: Apache-2.0
#include "model_zoo/gpt.h"

#include <cmath>
#include <utility>

#include "model_zoo/decoder.h"
#include "model_zoo/text_input.h"
#include "model_zoo/transformer_checks.h"
#include "runtime/base/option_checks.h"
#include "runtime/nn/feed_forward.h"
#include "runtime/nn/normalization.h"

namespace lockstep::model_zoo {

namespace {

/// One linear layer alone reads the norm's result.
std::unique_ptr<nn::LayerNorm> make_gpt_norm(const GptOptions& options) {
  return std::make_unique<nn::LayerNorm>(Shape{options.width},
                                         nn::NormOptions{.epsilon = options.norm_epsilon, .bias = options.bias},
                                         ops::NormResult::kForProducts);
}

std::unique_ptr<nn::TransformerBlock> make_gpt_block(const GptOptions& options) {
  nn::TransformerBlock::Parts parts;
  parts.attention_norm = make_gpt_norm(options);
  parts.attention = std::make_unique<nn::MultiHeadAttention>(nn::AttentionOptions{.width = options.width,
                                                                                  .heads = options.heads,
                                                                                  .input_bias = options.bias,
                                                                                  .output_bias = options.bias,
                                                                                  .causal = true,
                                                                                  .dropout = options.dropout});
  parts.feed_forward_norm = make_gpt_norm(options);
  parts.feed_forward = std::make_unique<nn::FeedForward>(options.width, options.hidden.value_or(4 * options.width),
                                                         nn::FeedForwardOptions{.bias = options.bias});
  parts.dropout = options.dropout;
  return std::make_unique<nn::TransformerBlock>(std::move(parts));
}

/// As in GPT-2's paper: all 2 * `layers` branches together add to the residual with the variance of one branch.
nn::Initializer gpt_initializer(const nn::Parameter& parameter, const GptOptions& options) {
  if (parameter.kind == nn::ParameterKind::kBias) return nn::Initializer::constant(0);
  if (parameter.kind != nn::ParameterKind::kWeight) return parameter.initializer;
  const bool ends_branch = parameter.name.ends_with(".output.weight");
  const double branches = ends_branch ? 2 * static_cast<double>(options.layers) : 1;
  return nn::Initializer::normal(options.initial_deviation / std::sqrt(branches));
}

}  // namespace

FieldProblems problems_of(const GptOptions& options) {
  FieldChecks checks;
  check_fields(options, checks);
  check_heads(checks, options);
  return checks.problems();
}

std::unique_ptr<LanguageModel> make_model(const GptOptions& options, const ModelInput& input) {
  require_none(problems_of(options), "model.gpt");
  require_label_a_position(input, "model.gpt");
  const std::int64_t vocabulary = vocabulary_for(input, options.context, options.vocabulary, "model.gpt");
  DecoderParts parts{.vocabulary = vocabulary,
                     .width = options.width,
                     .context = options.context,
                     .learned_positions = true,
                     .dropout = options.dropout,
                     .norm = make_gpt_norm(options),
                     .tied_head = options.tied_head,
                     .checkpoint_activations = options.checkpoint_activations};
  for (std::int64_t i = 0; i < options.layers; ++i) parts.blocks.push_back(make_gpt_block(options));
  auto model = std::make_unique<Decoder>(std::move(parts));
  model->choose_initializers([&](const nn::Parameter& parameter) { return gpt_initializer(parameter, options); });
  return model;
}

}  // namespace lockstep::model_zoo
