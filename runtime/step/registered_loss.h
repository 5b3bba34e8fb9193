// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "runtime/base/registered.h"
#include "runtime/step/training_step.h"

namespace lockstep::step {

/// Makes the loss of a run, from the options that the job gives it.
using MakeLoss = std::function<Loss(const Settings& settings)>;

/// Adds a loss that jobs call by `train { registered_loss { name: "NAME" } }`. To be called before a job is read, from
/// one thread. Throws UsageError for a name that is empty or taken.
void register_loss(const std::string& name, MakeLoss make);
/// The same, until what it returns is gone.
[[nodiscard]] Registration lend_loss(const std::string& name, MakeLoss make);

/// The loss that the call names. Throws FieldError where Registry::make() throws.
Loss make_registered_loss(const RegisteredOptions& call);

}  // namespace lockstep::step
