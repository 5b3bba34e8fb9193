// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/infer/export_graph.h"

#include <optional>

#include "runtime/base/error.h"
#include "runtime/base/files/whole_file.h"
#include "runtime/data/make_dataset.h"
#include "runtime/job/data_options.h"
#include "runtime/job/job.h"
#include "runtime/onnx/export.h"
#include "runtime/train/infer/prediction_file.h"
#include "runtime/train/infer/restored_model.h"

namespace lockstep::train {

namespace fs = std::filesystem;

namespace {

/// The data that the graph predicts: as they are, but windows of volumes where those are trained on.
data::Description predicted(const job::Job& job, const SavedModel& saved) {
  if (saved.preparation) return saved.preparation->trained;
  data::DataOptions options = job::data_options(job.data());
  const std::optional<Shape> patch = options.augment.volume.patch;
  options.augment = {.volume = {.patch = patch}};
  // Volumes to evaluate on may be smaller than a patch.
  const bool of_eval = job::evaluates(job.data()) && !patch;
  return data::describe(options, of_eval ? data::Split::kEval : data::Split::kTrain);
}

}  // namespace

void require_graph_format(const fs::path& path) {
  if (path.extension() == ".onnx") return;
  throw UsageError("--onnx " + path.string() + ": the name must end in .onnx");
}

GraphResult export_graph(const job::Job& job, const SavedModel& saved, const fs::path& out) {
  require_graph_format(out);
  require_writable(out);
  const RestoredModel restored = restored_model(job, saved);
  const model_zoo::ModelInput& input = restored.task.model_input();
  const std::string file = onnx::exported(*restored.model, {.sample_shape = predicted(job, saved).sample_shape,
                                                            .vocabulary = input.vocabulary,
                                                            .name = job.name(),
                                                            .more_inputs = input.more_inputs});
  if (const std::error_code error = write_whole_file(out, file)) {
    throw StorageError("cannot write " + out.string() + ": " + error.message());
  }
  return {
      .checkpoint = restored.checkpoint, .of_mean = restored.of_mean, .bytes = static_cast<std::int64_t>(file.size())};
}

}  // namespace lockstep::train
