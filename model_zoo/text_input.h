// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model_zoo/model_input.h"

namespace lockstep::model_zoo {

// Checks of the data by models of texts. `path` is the model's in a job.

/// Throws FieldError unless samples are texts with a label a position.
void require_label_a_position(const ModelInput& input, const std::string& path);

/// A text and its target's shape, for messages: "tokens [8] with targets [8]".
std::string describe_texts(const ModelInput& input);

/// How many tokens a model of texts knows: `vocabulary` where it is given, else as many as the data need. Throws
/// FieldError for texts beyond `context`, and for a `vocabulary` that the data's tokens or labels of positions exceed.
std::int64_t vocabulary_for(const ModelInput& input, std::int64_t context, std::optional<std::int64_t> vocabulary,
                            const std::string& path);

}  // namespace lockstep::model_zoo
