// SPDX-License-Identifier: Apache-2.0
#include "amp/grad_scaler/opt_level.h"

#include "amp/autocast/autocast.h"
#include "runtime/job/precision.h"
#include "runtime/ops/shape.h"
#include "runtime/tensor/error.h"
#include "runtime/tensor/gpu.h"

namespace lockstep::amp {

OptLevelProperties properties_of(const job::Amp& config) {
  OptLevelProperties properties;
  const bool full = config.opt_level() == job::O0 || config.opt_level() == job::OPT_LEVEL_DEFAULT;
  properties.compute_dtype = job::dtype_of(config.dtype(), full ? DType::kFloat32 : DType::kFloat16);
  if (full != (properties.compute_dtype == DType::kFloat32)) {
    throw UsageError("amp: opt_level " + job::OptLevel_Name(config.opt_level()) + " with dtype " +
                         job::Precision_Name(config.dtype()),
                     "O0 computes in FP32; O1, O2 and O3 in FP16 or BF16.");
  }
  switch (config.opt_level()) {
    case job::O1:
      properties.autocast = true;
      break;
    case job::O2:
      properties.reduced_parameters = true;
      break;
    case job::O3:
      properties.reduced_parameters = true;
      properties.keep_batch_norm_fp32 = false;
      properties.master_weights = false;
      break;
    default:
      break;
  }
  if (config.has_keep_batch_norm_fp32()) properties.keep_batch_norm_fp32 = config.keep_batch_norm_fp32();
  if (config.has_master_weights()) properties.master_weights = config.master_weights();
  if (!properties.master_weights && !properties.reduced_parameters) {
    throw UsageError("amp: master_weights cannot be false under " + job::OptLevel_Name(config.opt_level()) +
                         ", whose weights are float32",
                     "Use O2 or O3.");
  }
  if (!properties.keep_batch_norm_fp32 && !properties.reduced_parameters) {
    throw UsageError("amp: keep_batch_norm_fp32 cannot be false under " + job::OptLevel_Name(config.opt_level()) +
                         ", whose weights are float32",
                     "Use O2 or O3.");
  }
  return properties;
}

void initialize(nn::Module& model, optim::Optimizer& optimizer, const job::Amp& config, Device device) {
  const OptLevelProperties properties = properties_of(config);
  nn::ArenaOptions options;
  options.compute_dtype = properties.compute_dtype;
  options.reduced_parameters = properties.reduced_parameters;
  options.keep_norm_float32 = properties.keep_batch_norm_fp32;
  options.master_weights = properties.master_weights;
  options.device = device;
  if (model.arena()) throw UsageError("amp::initialize was called on this model before");
  const auto arena = std::make_shared<nn::Arena>(model, options);
  model.set_arena(arena);
  optimizer.attach(arena);
}

Tensor forward(nn::Module& model, const Tensor& input, const OptLevelProperties& properties) {
  const gpu::AllocationLabel label("activations");
  if (properties.autocast) {
    const Autocast autocast(properties.compute_dtype);
    return model.forward(input);
  }
  if (!properties.reduced_parameters) return model.forward(input);
  return ops::cast(model.forward(ops::cast(input, properties.compute_dtype)), DType::kFloat32);
}

}  // namespace lockstep::amp
