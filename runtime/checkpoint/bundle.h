// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "configs/checkpoint.pb.h"
#include "runtime/tensor/tensor.h"

// A bundle is a checkpoint in one file, to be carried elsewhere: a plain tar file of manifest.json, state.pb,
// tensors.safetensors and description.json. read_checkpoint() reads it; description.json is for people and other tools.

namespace lockstep::checkpoint {

/// Whether a path names a bundle: it ends in .lockstep.
bool is_bundle(const std::filesystem::path& path);

/// Writes a bundle, whole or not at all. Equal content gives equal bytes. Throws UsageError for another name, and
/// StorageError.
void write_bundle(const std::filesystem::path& path, const TrainingState& state,
                  const std::map<std::string, Tensor>& tensors, const std::string& description);

}  // namespace lockstep::checkpoint
