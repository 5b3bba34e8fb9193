// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/infer/export_weights.h"

#include "model_zoo/exchange.h"
#include "runtime/autograd/grad_mode.h"
#include "runtime/base/error.h"
#include "runtime/job/job.h"
#include "runtime/ops/shape.h"
#include "runtime/step/weight_file.h"
#include "runtime/train/infer/hub_folder.h"
#include "runtime/train/infer/restored_model.h"

namespace lockstep::train {

namespace fs = std::filesystem;

bool names_folder(const fs::path& path) {
  return path.extension() != ".safetensors" && (!path.has_filename() || fs::is_directory(path));
}

void require_export_format(const fs::path& path) {
  if (path.extension() == ".safetensors") return;
  if (names_folder(path)) return require_free_folder(path);
  throw UsageError("--out " + path.string() +
                   ": the name must end in .safetensors, or in / for a folder that "
                   "transformers reads");
}

ExportResult export_weights(const job::Job& job, const ExportOptions& options) {
  require_export_format(options.out);
  const RestoredModel restored = restored_model(job, options.saved);
  const autograd::NoGrad no_grad;
  ExportResult result{
      .checkpoint = restored.checkpoint, .of_mean = restored.of_mean, .dtype = inference_dtype(job, options.half)};
  const bool folder = names_folder(options.out);
  const nn::StateDict exported = folder ? model_zoo::to_transformers(restored.options, *restored.model)
                                        : model_zoo::to_pytorch(restored.options, *restored.model);
  nn::StateDict tensors;
  for (const auto& [name, tensor] : exported) {
    // Running statistics too: PyTorch's half() rounds them.
    const Tensor rounded = is_floating(tensor.dtype()) ? ops::cast(tensor, result.dtype) : tensor;
    result.bytes += static_cast<std::int64_t>(rounded.bytes());
    tensors.emplace(name, rounded);
  }
  result.tensors = static_cast<std::int64_t>(tensors.size());
  if (folder) {
    result.files =
        write_hub_folder(*known_data_of(job, options.saved).prepared, restored, tensors, result.dtype, options.out);
  } else {
    step::write_weights(tensors, options.out);
  }
  return result;
}

}  // namespace lockstep::train
