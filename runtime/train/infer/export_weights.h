// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/tensor/dtype.h"
#include "runtime/train/saved_model.h"

namespace lockstep::job {
class Job;
}

namespace lockstep::train {

struct ExportOptions {
  SavedModel saved;
  std::filesystem::path out;  ///< .safetensors, or a folder: names_folder()
  bool half = false;          ///< weights rounded to amp.dtype, or to fp16 where that is FP32
};

struct ExportResult {
  std::string checkpoint;  ///< what was exported
  bool of_mean = false;    ///< the running mean of the weights
  std::int64_t tensors = 0;
  std::int64_t bytes = 0;
  DType dtype = DType::kFloat32;
  std::vector<std::string> files = {};  ///< of a folder, beside the weights
};

/// Whether weights go into a folder as transformers' save_pretrained() makes it: the path ends in "/", or is a folder.
bool names_folder(const std::filesystem::path& path);

/// Throws UsageError unless the name ends in .safetensors or is that of a folder that is new or empty.
void require_export_format(const std::filesystem::path& path);

/// Writes a checkpoint's weights and running statistics, whole or not at all, under the names and in the layouts of
/// PyTorch's model (model_zoo/exchange.h); into a folder with what from_pretrained(FOLDER) needs (hub_folder.h). Throws
/// UsageError where the checkpoint is of another model, StorageError.
ExportResult export_weights(const job::Job& job, const ExportOptions& options);

}  // namespace lockstep::train
