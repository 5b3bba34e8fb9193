// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "runtime/tensor/tensor.h"

namespace lockstep::checkpoint {

/// The tensors of a file that PyTorch wrote since 1.6, a zip of a pickle and of the storages: torch.save of a
/// state_dict, or of a dictionary that holds one as "state_dict", "model_state_dict", "model" or "module". Names as
/// there; a "module." before all of them, as DataParallel puts it, is left out. Nothing in the file is run: what is
/// neither a tensor nor a number, text, list or dictionary is refused. Tensors that share memory there are copies here;
/// all of them take at most four times the bytes of the file, or 64 MiB.
/// Throws StorageError that names the file and what is wrong with it.
std::map<std::string, Tensor> read_torch_file(const std::string& path);

}  // namespace lockstep::checkpoint
