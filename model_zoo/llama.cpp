// SPDX-License-Identifier: Apache-2.0
#include "model_zoo/llama.h"

#include <utility>

#include "model_zoo/decoder.h"
#include "model_zoo/text_input.h"
#include "model_zoo/transformer_checks.h"
#include "runtime/base/option_checks.h"
#include "runtime/nn/feed_forward.h"
#include "runtime/nn/normalization.h"

namespace lockstep::model_zoo {

namespace {

std::unique_ptr<nn::RmsNorm> make_llama_norm(const LlamaOptions& options, ops::NormResult result) {
  return std::make_unique<nn::RmsNorm>(Shape{options.width}, options.norm_epsilon, true, result);
}

std::int64_t hidden_of(const LlamaOptions& options) {
  constexpr std::int64_t kMultiple = 256;
  return options.hidden.value_or((8 * options.width / 3 + kMultiple - 1) / kMultiple * kMultiple);
}

std::unique_ptr<nn::TransformerBlock> make_llama_block(const LlamaOptions& options,
                                                       const std::shared_ptr<nn::RotaryPositions>& rotary) {
  nn::TransformerBlock::Parts parts;
  parts.attention_norm = make_llama_norm(options, ops::NormResult::kForProducts);
  parts.attention = std::make_unique<nn::MultiHeadAttention>(nn::AttentionOptions{.width = options.width,
                                                                                  .heads = options.heads,
                                                                                  .kv_heads = options.kv_heads,
                                                                                  .channels = options.head_width,
                                                                                  .input_bias = options.attention_bias,
                                                                                  .output_bias = options.attention_bias,
                                                                                  .causal = true,
                                                                                  .rotary = rotary});
  // Two layers read its result. Their gradients are added in float32.
  parts.feed_forward_norm = make_llama_norm(options, ops::NormResult::kByPolicy);
  parts.feed_forward = std::make_unique<nn::GatedFeedForward>(options.width, hidden_of(options));
  return std::make_unique<nn::TransformerBlock>(std::move(parts));
}

nn::Initializer llama_initializer(const nn::Parameter& parameter, const LlamaOptions& options) {
  if (parameter.kind == nn::ParameterKind::kBias) return nn::Initializer::constant(0);
  if (parameter.kind != nn::ParameterKind::kWeight) return parameter.initializer;
  return nn::Initializer::normal(options.initial_deviation);
}

}  // namespace

FieldProblems problems_of(const LlamaOptions& options) {
  FieldChecks checks;
  check_fields(options, checks);
  if (options.head_width) {
    checks.check(*options.head_width % 2 == 0, "head_width", "even", static_cast<double>(*options.head_width));
  } else {
    check_heads(checks, options);
    if (options.heads >= 1 && options.width >= 1 && options.width % options.heads == 0) {
      const std::int64_t head_width = options.width / options.heads;
      checks.check(head_width % 2 == 0, "width", "heads times an even number of channels",
                   static_cast<double>(options.width), {"heads"});
      checks.check(LlamaOptions::kHeadWidth.holds(static_cast<double>(head_width)), "width",
                   "at most 65536 times heads", static_cast<double>(options.width), {"heads"});
    }
  }
  if (options.kv_heads && *options.kv_heads >= 1 && options.heads >= 1) {
    checks.check(options.heads % *options.kv_heads == 0, "kv_heads", "a divisor of heads",
                 static_cast<double>(*options.kv_heads), {"heads"});
  }
  if (options.rope_scaling && options.rope_scaling->kind == ops::RotaryScalingKind::kLlama3) {
    const double low = options.rope_scaling->low_freq_factor, high = options.rope_scaling->high_freq_factor;
    checks.check(high > low, "rope_scaling.high_freq_factor", "> low_freq_factor", high,
                 {"rope_scaling.low_freq_factor"});
  }
  return checks.problems();
}

std::unique_ptr<LanguageModel> make_model(const LlamaOptions& options, const ModelInput& input) {
  require_none(problems_of(options), "model.llama");
  require_label_a_position(input, "model.llama");
  const std::int64_t vocabulary = vocabulary_for(input, options.context, options.vocabulary, "model.llama");
  const auto rotary =
      std::make_shared<nn::RotaryPositions>(options.context, options.head_width.value_or(options.width / options.heads),
                                            options.rope_theta, options.rope_scaling);
  DecoderParts parts{.vocabulary = vocabulary,
                     .width = options.width,
                     .context = options.context,
                     .norm = make_llama_norm(options, ops::NormResult::kForProducts),
                     .tied_head = options.tied_head,
                     .checkpoint_activations = options.checkpoint_activations};
  for (std::int64_t i = 0; i < options.layers; ++i) parts.blocks.push_back(make_llama_block(options, rotary));
  auto model = std::make_unique<Decoder>(std::move(parts));
  model->choose_initializers([&](const nn::Parameter& parameter) { return llama_initializer(parameter, options); });
  return model;
}

}  // namespace lockstep::model_zoo
