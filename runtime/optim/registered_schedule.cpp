// SPDX-License-Identifier: Apache-2.0
#include "runtime/optim/registered_schedule.h"

#include <utility>

namespace lockstep::optim {

namespace {

Registry<ScheduleFunction>& schedules() {
  static Registry<ScheduleFunction> registry("schedule");
  return registry;
}

}  // namespace

void register_schedule(const std::string& name, MakeSchedule make) { schedules().add(name, std::move(make)); }

Registration lend_schedule(const std::string& name, MakeSchedule make) {
  return schedules().lend(name, std::move(make));
}

ScheduleFunction make_registered_schedule(const RegisteredOptions& call) {
  try {
    return schedules().make(call);
  } catch (const UsageError& error) {
    throw FieldError("schedule.registered", error.what(), error.advice());
  }
}

}  // namespace lockstep::optim
