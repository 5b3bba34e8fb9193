// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "runtime/data/preparation.h"
#include "runtime/nn/state_dict.h"
#include "runtime/train/infer/restored_model.h"

namespace lockstep::train {

/// Throws UsageError where the folder is there and holds anything.
void require_free_folder(const std::filesystem::path& folder);

/// The files of a tokenizer by the names that transformers has for them: tokenizer.json, tokenizer.model, or GPT-2's
/// vocab.json and merges.txt.
std::map<std::string, std::string> tokenizer_files(const data::TokenizerFiles& files);

/// Writes a folder, whole or not at all, that AutoModel.from_pretrained(FOLDER) reads: `weights`, of `dtype`, which
/// model_zoo::to_transformers() gave of the model, as model.safetensors, beside config.json and the tokenizer's files.
/// Returns the names of the other files. Throws UsageError for a model that transformers have none of, and as
/// require_free_folder() does; StorageError.
std::vector<std::string> write_hub_folder(const data::Preparation& preparation, const RestoredModel& restored,
                                          const nn::StateDict& weights, DType dtype,
                                          const std::filesystem::path& folder);

}  // namespace lockstep::train
