// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "model_zoo/gpt_options.h"
#include "model_zoo/language_model.h"
#include "model_zoo/model_input.h"

namespace lockstep::model_zoo {

/// GPT-2: learned positions, pre-norm blocks with tanh-GELU, a tied head; int64 [N, T] -> logits [N, T, vocabulary].
/// Throws FieldError for options without a meaning, and for data that is no text or does not fit.
std::unique_ptr<LanguageModel> make_model(const GptOptions& options, const ModelInput& input);

}  // namespace lockstep::model_zoo
