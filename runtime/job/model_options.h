// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "model_zoo/build.h"

namespace lockstep::job {

class Model;

/// The model that a job describes, as the options of model_zoo. A field without a value gives the option's own default.
/// Throws FieldError where no model is named.
model_zoo::ModelOptions model_options(const Model& model);

/// The field that names the model's kind, "mlp", "convnet", "resnet", or the name of a registered one; "unknown" where
/// none is named.
std::string model_kind(const Model& model);

}  // namespace lockstep::job
