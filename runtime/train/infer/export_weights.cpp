// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/infer/export_weights.h"

#include <vector>

#include "model_zoo/exchange.h"
#include "runtime/autograd/grad_mode.h"
#include "runtime/base/error.h"
#include "runtime/base/files/durable_file.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/job/job.h"
#include "runtime/job/training_options.h"
#include "runtime/ops/shape.h"
#include "runtime/train/infer/restored_model.h"

namespace lockstep::train {

namespace fs = std::filesystem;

namespace {

DType dtype_of(const job::Job& job, bool half) {
  if (!half) return DType::kFloat32;
  const DType compute = job::amp_options(job.amp()).dtype.value_or(DType::kFloat32);
  return is_reduced(compute) ? compute : DType::kFloat16;
}

/// Beside the file first, so that it is there whole or not at all, whatever the power does.
void write(const fs::path& path, const std::vector<checkpoint::NamedTensor>& tensors) {
  const fs::path beside = path.string() + ".tmp";
  std::error_code error;
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), error);
  fs::remove(beside, error);
  try {
    checkpoint::write_safetensors(beside.string(), tensors, {{"format", "pt"}});
    fs::rename(beside, path, error);
    if (error) throw StorageError("cannot write " + path.string() + ": " + error.message());
    sync_directory(path.has_parent_path() ? path.parent_path().string() : ".");
  } catch (const StorageError&) {
    fs::remove(beside, error);
    throw;
  }
}

}  // namespace

void require_export_format(const fs::path& path) {
  if (path.extension() == ".safetensors") return;
  throw UsageError("--out " + path.string() + ": the name must end in .safetensors");
}

ExportResult export_weights(const job::Job& job, const ExportOptions& options) {
  require_export_format(options.out);
  const RestoredModel restored = restored_model(job, options.checkpoint, options.raw_weights);
  const autograd::NoGrad no_grad;
  ExportResult result{
      .checkpoint = restored.checkpoint, .of_mean = restored.of_mean, .dtype = dtype_of(job, options.half)};
  std::vector<checkpoint::NamedTensor> tensors;
  for (const auto& [name, tensor] : model_zoo::to_pytorch(restored.options, *restored.model)) {
    // Running statistics too: PyTorch's half() rounds them.
    tensors.push_back({name, is_floating(tensor.dtype()) ? ops::cast(tensor, result.dtype) : tensor});
    result.bytes += static_cast<std::int64_t>(tensors.back().tensor.bytes());
  }
  result.tensors = static_cast<std::int64_t>(tensors.size());
  write(options.out, tensors);
  return result;
}

}  // namespace lockstep::train
