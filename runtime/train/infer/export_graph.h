// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

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
/// weights. Its input has the shape of a sample of the evaluation data, or of the training data where there is none.
/// Throws UsageError where the checkpoint is of another model or the graph is too large for one file, StorageError.
GraphResult export_graph(const job::Job& job, const std::filesystem::path& checkpoint, const std::filesystem::path& out,
                         bool raw_weights = false);

}  // namespace lockstep::train
