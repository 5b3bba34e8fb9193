// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "runtime/train/saved_model.h"

namespace lockstep::job {
class Job;
}

namespace lockstep::train {

struct GraphResult {
  std::string checkpoint;  ///< what was exported
  bool of_mean = false;    ///< the running mean of its weights
  std::int64_t bytes = 0;
};

/// Throws UsageError unless the name ends in .onnx.
void require_graph_format(const std::filesystem::path& path);

/// Writes, whole or not at all, the inference graph (runtime/onnx/export.h) of the job's model with a checkpoint's
/// weights. Its input has the shape of a sample of the evaluation data, or of the training data where there is none or
/// their preparation alone is known; where volumes are trained on in patches, that of a patch, which a sliding window
/// takes over a volume of any extents.
/// Throws UsageError where the checkpoint is of another model or the graph is too large for one file, StorageError.
GraphResult export_graph(const job::Job& job, const SavedModel& saved, const std::filesystem::path& out);

}  // namespace lockstep::train
