// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "model_zoo/model_input.h"
#include "runtime/base/registered.h"
#include "runtime/nn/module.h"

namespace lockstep::model_zoo {

/// Makes a model that fits `input`. Called several times a run, also within an nn::WithoutValues.
using MakeModel = std::function<std::unique_ptr<nn::Module>(const ModelInput& input, const Settings& settings)>;

/// Adds a model that jobs call by `model { registered { name: "NAME" } }`. To be called before a job is read, from one
/// thread. Throws UsageError for a name that is empty or taken.
void register_model(const std::string& name, MakeModel make);
/// The same, until what it returns is gone.
[[nodiscard]] Registration lend_model(const std::string& name, MakeModel make);

/// The model that the call names. Throws FieldError where Registry::make() throws.
std::unique_ptr<nn::Module> make_model(const RegisteredOptions& call, const ModelInput& input);

}  // namespace lockstep::model_zoo
