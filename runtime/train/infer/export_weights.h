// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "runtime/tensor/dtype.h"
#include "runtime/train/saved_model.h"

namespace lockstep::job {
class Job;
}

namespace lockstep::train {

struct ExportOptions {
  SavedModel saved;
  std::filesystem::path out;  ///< .safetensors
  bool half = false;          ///< weights rounded to amp.dtype, or to fp16 where that is FP32
};

struct ExportResult {
  std::string checkpoint;  ///< what was exported
  bool of_mean = false;    ///< the running mean of the weights
  std::int64_t tensors = 0;
  std::int64_t bytes = 0;
  DType dtype = DType::kFloat32;
};

/// Throws UsageError unless the name ends in .safetensors.
void require_export_format(const std::filesystem::path& path);

/// Writes a checkpoint's weights and running statistics, whole or not at all, under the names and in the layouts of
/// PyTorch's model (model_zoo/exchange.h). Throws UsageError where the checkpoint is of another model, StorageError.
ExportResult export_weights(const job::Job& job, const ExportOptions& options);

}  // namespace lockstep::train
