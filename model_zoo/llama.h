// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "model_zoo/language_model.h"
#include "model_zoo/llama_options.h"
#include "model_zoo/model_input.h"

namespace lockstep::model_zoo {

/// Llama: rotary positions, pre-norm blocks with RMSNorm, SwiGLU and grouped queries; int64 [N, T] -> logits
/// [N, T, vocabulary]. Throws FieldError for options without a meaning, and for data that is no text or does not fit.
std::unique_ptr<LanguageModel> make_model(const LlamaOptions& options, const ModelInput& input);

}  // namespace lockstep::model_zoo
