// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/infer/export_weights.h"

#include "model_zoo/exchange.h"
#include "runtime/autograd/grad_mode.h"
#include "runtime/base/error.h"
#include "runtime/job/job.h"
#include "runtime/ops/shape.h"
#include "runtime/step/weight_file.h"
#include "runtime/train/infer/restored_model.h"

namespace lockstep::train {

namespace fs = std::filesystem;

void require_export_format(const fs::path& path) {
  if (path.extension() == ".safetensors") return;
  throw UsageError("--out " + path.string() + ": the name must end in .safetensors");
}

ExportResult export_weights(const job::Job& job, const ExportOptions& options) {
  require_export_format(options.out);
  const RestoredModel restored = restored_model(job, options.saved);
  const autograd::NoGrad no_grad;
  ExportResult result{
      .checkpoint = restored.checkpoint, .of_mean = restored.of_mean, .dtype = inference_dtype(job, options.half)};
  nn::StateDict tensors;
  for (const auto& [name, tensor] : model_zoo::to_pytorch(restored.options, *restored.model)) {
    // Running statistics too: PyTorch's half() rounds them.
    const Tensor exported = is_floating(tensor.dtype()) ? ops::cast(tensor, result.dtype) : tensor;
    result.bytes += static_cast<std::int64_t>(exported.bytes());
    tensors.emplace(name, exported);
  }
  result.tensors = static_cast<std::int64_t>(tensors.size());
  step::write_weights(tensors, options.out);
  return result;
}

}  // namespace lockstep::train
