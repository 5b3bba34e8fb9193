// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "configs/checkpoint.pb.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::checkpoint {

/// Everything a run needs to go on: tensors (fp32 masters, buffers, optimizer state) and the rest, by logical names,
/// never by rank. On disk a directory of manifest.json, state.pb and tensors.safetensors.
struct Checkpoint {
  TrainingState state;
  std::map<std::string, Tensor> tensors;
  std::string path;
  /// From Store::latest(): a line for each newer checkpoint that was damaged, saying what is taken instead.
  std::vector<std::string> notices;
};

/// The state that a state file's bytes hold. Throws StorageError, which names `file`, where that is no state.
TrainingState parse_state(std::string_view content, const std::string& file);

/// Writes the files into an existing empty directory and makes them durable there; the manifest comes last.
void write_checkpoint(const std::string& path, const TrainingState& state,
                      const std::map<std::string, Tensor>& tensors);

// `path` of what follows: a checkpoint's directory, or a bundle of one (bundle.h).

/// Reads a checkpoint whose every byte agrees with its manifest. Throws StorageError that names the damaged file or
/// tensor; nothing is handed out then.
Checkpoint read_checkpoint(const std::string& path);

/// Reads the state alone, and compares the sizes of the files with the manifest.
TrainingState read_state(const std::string& path);

/// Reads a checkpoint without keeping its tensors: each is compared with the manifest and dropped.
Checkpoint read_without_tensors(const std::string& path);

/// The checks of read_checkpoint, with no more than one tensor in memory.
Manifest verify_checkpoint(const std::string& path);

/// Reads the manifest and compares the files' sizes with it.
Manifest check_sizes(const std::string& path);

}  // namespace lockstep::checkpoint
