// SPDX-License-Identifier: Apache-2.0
#include "amp/grad_scaler/opt_level.h"

#include "runtime/tensor/error.h"

namespace lockstep::amp {

void initialize(nn::Module& model, optim::Optimizer& optimizer, const AmpOptions& options, Device device) {
  const OptLevelProperties properties = properties_of(options);
  nn::ArenaOptions arena_options;
  arena_options.compute_dtype = properties.compute_dtype;
  arena_options.reduced_parameters = properties.reduced_parameters;
  arena_options.keep_norm_float32 = properties.keep_batch_norm_fp32;
  arena_options.master_weights = properties.master_weights;
  arena_options.device = device;
  if (model.arena()) throw UsageError("amp::initialize was called on this model before");
  const auto arena = std::make_shared<nn::Arena>(model, arena_options);
  model.set_arena(arena);
  optimizer.attach(arena);
}

}  // namespace lockstep::amp
