// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/infer/export_graph.h"

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/files/whole_file.h"
#include "runtime/data/make_dataset.h"
#include "runtime/job/data_options.h"
#include "runtime/job/job.h"
#include "runtime/nn/module.h"
#include "runtime/onnx/export.h"
#include "runtime/ops/elementwise.h"
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

/// A model whose answers are in the units of the files: the scale of the targets is undone.
class InFileUnits final : public nn::Module {
 public:
  InFileUnits(std::unique_ptr<nn::Module> model, const data::TargetScale& scale)
      : model_(*model), std_(values_or(scale.std, 1)), mean_(values_or(scale.mean, 0)) {
    adopt("model", std::move(model));
  }
  Tensor forward(const Tensor& x) override { return forward_all(std::span<const Tensor>(&x, 1)); }

 protected:
  Tensor forward_all(std::span<const Tensor> inputs) override {
    return ops::add(ops::mul(model_(inputs), std_), mean_);
  }

 private:
  static Tensor values_or(std::vector<float> values, float otherwise) {
    if (values.empty()) values.push_back(otherwise);
    return Tensor::from(values, {std::ssize(values)});
  }

  nn::Module& model_;
  Tensor std_;
  Tensor mean_;
};

}  // namespace

void require_graph_format(const fs::path& path) {
  if (path.extension() == ".onnx") return;
  throw UsageError("--onnx " + path.string() + ": the name must end in .onnx");
}

GraphResult export_graph(const job::Job& job, const SavedModel& saved, const fs::path& out) {
  require_graph_format(out);
  require_writable(out);
  RestoredModel restored = restored_model(job, saved);
  if (const data::TargetScale& scale = restored.task.target_summary().scale; !scale.is_none()) {
    restored.model = std::make_unique<InFileUnits>(std::move(restored.model), scale);
    restored.model->train(false);
  }
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
