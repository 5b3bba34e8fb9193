// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "model_zoo/language_model.h"
#include "model_zoo/model_input.h"
#include "runtime/base/field_checks.h"
#include "runtime/base/option_fields.h"

namespace lockstep::model_zoo {

/// The defaults are GPT-2's smallest size, of 124 million parameters. (Radford et al.: "Language Models are
/// Unsupervised Multitask Learners", 2019.)
struct GptOptions {
  std::int64_t layers = 12;
  std::int64_t heads = 12;
  std::int64_t width = 768;                     ///< a multiple of heads
  std::optional<std::int64_t> hidden = {};      ///< width of a feed-forward layer; default: 4 width
  std::int64_t context = 1024;                  ///< the longest text
  std::optional<std::int64_t> vocabulary = {};  ///< default: the data's; a larger one leaves tokens unused
  double dropout = 0;                           ///< of embeddings, attention and what blocks add; in [0, 1)
  bool bias = true;                             ///< of linear layers and norms
  bool tied_head = true;                        ///< the head's weight is the embedding's
  double norm_epsilon = 1e-5;
  double initial_deviation = 0.02;      ///< of weights; those that end a block's branch: divided by sqrt(2 layers)
  bool checkpoint_activations = false;  ///< of blocks: nn::checkpoint()

  static constexpr std::string_view kKind = "gpt";  ///< its name in a job
  static constexpr auto fields() {
    return std::tuple(
        option("layers", &GptOptions::layers, kAtLeastOne), option("heads", &GptOptions::heads, kAtLeastOne),
        option("width", &GptOptions::width, kAtLeastOne), option("hidden", &GptOptions::hidden, kAtLeastOne),
        option("context", &GptOptions::context, kAtLeastOne),
        option("vocabulary", &GptOptions::vocabulary, kAtLeastOne), option("dropout", &GptOptions::dropout, kFraction),
        option("bias", &GptOptions::bias), option("tied_head", &GptOptions::tied_head),
        option("norm_epsilon", &GptOptions::norm_epsilon, kPositive),
        option("initial_deviation", &GptOptions::initial_deviation, kNotNegative),
        option("checkpoint_activations", &GptOptions::checkpoint_activations));
  }
  bool operator==(const GptOptions&) const = default;
};

/// All that is wrong with the options, by the names of the job's fields.
FieldProblems problems_of(const GptOptions& options);

/// GPT-2: learned positions, pre-norm blocks with tanh-GELU, a tied head; int64 [N, T] -> logits [N, T, vocabulary].
/// Throws FieldError for options without a meaning, and for data that is no text or does not fit.
std::unique_ptr<LanguageModel> make_model(const GptOptions& options, const ModelInput& input);

}  // namespace lockstep::model_zoo
