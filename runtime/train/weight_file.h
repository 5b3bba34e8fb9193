// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "runtime/nn/state_dict.h"

namespace lockstep::train {

/// The tensors of a file of weights by the names that it gives them: .safetensors; .index.json, which tells for each
/// tensor the .safetensors file beside it; or any other name for what torch.save wrote. Throws StorageError.
nn::StateDict read_weights(const std::filesystem::path& path);

}  // namespace lockstep::train
