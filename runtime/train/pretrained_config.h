// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "model_zoo/build.h"

namespace lockstep::train {

/// Compares the options of a gpt, llama or bert with the config.json that transformers puts beside a file of weights;
/// nothing happens where there is none. It tells what tensors do not: how many heads share a width, the positions'
/// wavelengths, an epsilon, an activation. Throws FieldError at init_from.path that lists all that differs.
void require_config_of(const std::filesystem::path& weights, const model_zoo::ModelOptions& options);

}  // namespace lockstep::train
