// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "model_zoo/language_model.h"
#include "model_zoo/model_input.h"
#include "runtime/base/field_checks.h"
#include "runtime/base/option_fields.h"
#include "runtime/ops/rotary.h"

namespace lockstep::model_zoo {

/// The defaults are Llama 2's smallest size, of 7 billion parameters. (Touvron et al.: "Llama 2: Open Foundation and
/// Fine-Tuned Chat Models", 2023.)
struct LlamaOptions {
  std::int64_t layers = 32;
  std::int64_t heads = 32;                    ///< of the queries
  std::optional<std::int64_t> kv_heads = {};  ///< of keys and values, a divisor of heads; default: heads
  std::int64_t width = 4096;                  ///< a multiple of heads, and width / heads is even, without a head_width
  std::optional<std::int64_t> head_width = {};  ///< channels of a head, an even number; default: width / heads
  /// Width of a feed-forward layer; default: 8/3 width, rounded up to a multiple of 256.
  std::optional<std::int64_t> hidden = {};
  std::int64_t context = 4096;                  ///< the longest text
  std::optional<std::int64_t> vocabulary = {};  ///< default: the data's; a larger one leaves tokens unused
  double rope_theta = 10000;                    ///< base of the rotary positions' wavelengths
  /// Stretches them for texts longer than those of a first training; none: as rope_theta says.
  std::optional<ops::RotaryScaling> rope_scaling = {};
  bool attention_bias = false;  ///< of all four projections
  bool tied_head = false;       ///< the head's weight is the embedding's
  double norm_epsilon = 1e-5;
  double initial_deviation = 0.02;      ///< of all weights
  bool checkpoint_activations = false;  ///< of blocks: nn::checkpoint()

  /// An angle is kept for each pair of channels.
  static constexpr Bound kHeadWidth{"in [1, 65536]", 1, false, 65536, false};
  static constexpr std::string_view kKind = "llama";  ///< its name in a job
  static constexpr auto fields() {
    return std::tuple(
        option("layers", &LlamaOptions::layers, kAtLeastOne), option("heads", &LlamaOptions::heads, kAtLeastOne),
        option("kv_heads", &LlamaOptions::kv_heads, kAtLeastOne), option("width", &LlamaOptions::width, kAtLeastOne),
        option("head_width", &LlamaOptions::head_width, kHeadWidth),
        option("hidden", &LlamaOptions::hidden, kAtLeastOne), option("context", &LlamaOptions::context, kAtLeastOne),
        option("vocabulary", &LlamaOptions::vocabulary, kAtLeastOne),
        option("rope_theta", &LlamaOptions::rope_theta, kPositive), option("rope_scaling", &LlamaOptions::rope_scaling),
        option("attention_bias", &LlamaOptions::attention_bias), option("tied_head", &LlamaOptions::tied_head),
        option("norm_epsilon", &LlamaOptions::norm_epsilon, kPositive),
        option("initial_deviation", &LlamaOptions::initial_deviation, kNotNegative),
        option("checkpoint_activations", &LlamaOptions::checkpoint_activations));
  }
  bool operator==(const LlamaOptions&) const = default;
};

/// All that is wrong with the options, by the names of the job's fields.
FieldProblems problems_of(const LlamaOptions& options);

/// Llama: rotary positions, pre-norm blocks with RMSNorm, SwiGLU and grouped queries; int64 [N, T] -> logits
/// [N, T, vocabulary]. Throws FieldError for options without a meaning, and for data that is no text or does not fit.
std::unique_ptr<LanguageModel> make_model(const LlamaOptions& options, const ModelInput& input);

}  // namespace lockstep::model_zoo

namespace lockstep {

/// The scalings that a job can name.
template <>
struct EnumNames<ops::RotaryScalingKind> {
  static constexpr std::array kNames{std::pair{ops::RotaryScalingKind::kLlama3, std::string_view("ROPE_LLAMA3")},
                                     std::pair{ops::RotaryScalingKind::kLinear, std::string_view("ROPE_LINEAR")}};
};

}  // namespace lockstep
