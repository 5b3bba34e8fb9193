// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "configs/job.pb.h"
#include "runtime/nn/module.h"
#include "runtime/tensor/shape.h"

namespace lockstep::model_zoo {

/// What a model is built to fit.
struct ModelInput {
  Shape sample_shape;        ///< of one sample, channels last: [8, 8, 1]
  std::int64_t outputs = 0;  ///< classes, or the size of a regression's target
};

/// The model that the resolved job names, its parameters initialised from `seed`. Throws FieldError, naming the block,
/// for a model that does not fit the samples.
std::unique_ptr<nn::Module> build(const job::Model& config, const ModelInput& input, std::uint64_t seed);

/// The same model with parameters that have no values, and take no memory for them: for names, shapes and counts.
std::unique_ptr<nn::Module> outline(const job::Model& config, const ModelInput& input);

}  // namespace lockstep::model_zoo
