// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "runtime/base/registered.h"

namespace lockstep::optim {

/// A schedule of a program's own, as PyTorch's LambdaLR: the factor of the optimizer's learning rate in the step that
/// follows so many applied ones. It gives the same on every rank, finite and >= 0. On a GPU it is asked for all steps
/// before the first.
using ScheduleFunction = std::function<double(std::int64_t applied_steps)>;
/// Makes the schedule of a run, from the options that the job gives it.
using MakeSchedule = std::function<ScheduleFunction(const Settings& settings)>;

/// Adds a schedule that jobs call by `schedule { registered { name: "NAME" } }`. To be called before a job is read,
/// from one thread. Throws UsageError for a name that is empty or taken.
void register_schedule(const std::string& name, MakeSchedule make);
/// The same, until what it returns is gone.
[[nodiscard]] Registration lend_schedule(const std::string& name, MakeSchedule make);

/// The schedule that the call names. Throws FieldError where Registry::make() throws.
ScheduleFunction make_registered_schedule(const RegisteredOptions& call);

}  // namespace lockstep::optim
