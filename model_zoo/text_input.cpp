// SPDX-License-Identifier: Apache-2.0
#include "model_zoo/text_input.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/error.h"

namespace lockstep::model_zoo {

std::string describe_texts(const ModelInput& input) {
  return fmt::format("{} {} with targets {}", input.vocabulary > 0 ? "tokens" : "numbers", input.sample_shape.str(),
                     input.target_shape.str());
}

void require_label_a_position(const ModelInput& input, const std::string& path) {
  if (input.vocabulary > 0 && input.sample_shape.rank() == 1 && input.target_shape == input.sample_shape) return;
  throw FieldError(path, "needs texts with a label a position; the data has " + describe_texts(input));
}

std::int64_t vocabulary_for(const ModelInput& input, std::int64_t context, std::optional<std::int64_t> vocabulary,
                            const std::string& path) {
  if (input.sample_shape[0] > context) {
    throw FieldError(path + ".context",
                     fmt::format("{} is shorter than the data's texts: {}", context, input.sample_shape[0]));
  }
  const bool answers_in_tokens = input.target_shape == input.sample_shape;
  const std::int64_t needed = answers_in_tokens ? std::max(input.vocabulary, input.outputs) : input.vocabulary;
  if (vocabulary.value_or(needed) < needed) {
    throw FieldError(path + ".vocabulary",
                     fmt::format("{} are fewer tokens than the data has: {}", *vocabulary, needed),
                     "Leave vocabulary out, and the model fits itself to the data.");
  }
  return vocabulary.value_or(needed);
}

}  // namespace lockstep::model_zoo
