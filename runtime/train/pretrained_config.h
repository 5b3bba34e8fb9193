// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "model_zoo/build.h"

namespace lockstep::train {

/// Compares the options of a gpt, llama, bert or vit with the config.json that transformers puts beside a file of
/// weights (model_zoo/hub_config.h); nothing happens where there is none. It tells what tensors do not: how many heads
/// share a width, the positions' wavelengths, an epsilon, an activation. `whole`: all tensors of the model are taken
/// from the file. Throws FieldError at init_from.path that lists all that differs. Returns what counts while training
/// alone, a sentence each.
std::vector<std::string> require_config_of(const std::filesystem::path& weights, const model_zoo::ModelOptions& options,
                                           bool whole);

}  // namespace lockstep::train
