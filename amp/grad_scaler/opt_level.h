// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "configs/job.pb.h"
#include "runtime/nn/arena.h"
#include "runtime/nn/module.h"
#include "runtime/optim/optimizer.h"

namespace lockstep::amp {

/// What an opt level stands for, each field overridable in the job. O0: float32. O1: float32 weights, operations cast
/// by policy. O2: 16-bit weights, batch norm in float32, float32 masters. O3: 16-bit throughout.
struct OptLevelProperties {
  DType compute_dtype = DType::kFloat32;
  bool autocast = false;            ///< operations cast by policy (O1)
  bool reduced_parameters = false;  ///< the model's weights are 16-bit (O2, O3)
  bool keep_batch_norm_fp32 = true;
  bool master_weights = true;
};
/// Throws UsageError for a level and a dtype, or overrides, that contradict each other.
OptLevelProperties properties_of(const job::Amp& config);

/// Moves the model's parameters into an arena as the opt level asks and binds the optimizer to it. Call it once, before
/// DistributedDataParallel.
void initialize(nn::Module& model, optim::Optimizer& optimizer, const job::Amp& config, Device device = kCpu);

/// Runs the model at its opt level: under autocast (O1), or with the input cast to 16 bits and the result back to
/// float32 (O2, O3).
Tensor forward(nn::Module& model, const Tensor& input, const OptLevelProperties& properties);

}  // namespace lockstep::amp
