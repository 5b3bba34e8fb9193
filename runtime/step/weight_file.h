// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "runtime/nn/state_dict.h"

namespace lockstep::step {

/// Writes the model's parameters and running statistics, as nn::state_dict() names them, to a .safetensors file. The
/// file is there whole or not at all, whatever the power does. On one rank: all hold the same. Throws UsageError for
/// another name, StorageError.
void save_weights(nn::Module& model, const std::filesystem::path& path);

/// Reads a file of weights (read_weights()) into the model, as nn::load_state_dict() does. In a DistributedDataParallel
/// every rank reads it, or one rank and then broadcast_weights(). Throws StorageError, UsageError.
nn::StateDifferences load_weights(nn::Module& model, const std::filesystem::path& path, bool strict = true);

/// The tensors of a file of weights by the names that it gives them: .safetensors; .index.json, which tells for each
/// tensor the .safetensors file beside it; or any other name for what torch.save wrote. Throws StorageError.
nn::StateDict read_weights(const std::filesystem::path& path);

/// Writes tensors, from any device, as save_weights() does.
void write_weights(const nn::StateDict& tensors, const std::filesystem::path& path);

}  // namespace lockstep::step
