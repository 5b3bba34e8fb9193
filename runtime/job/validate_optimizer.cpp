// SPDX-License-Identifier: Apache-2.0
#include "configs/job.pb.h"
#include "runtime/job/message_options.h"
#include "runtime/job/training_options.h"
#include "runtime/job/validate_parts.h"

namespace lockstep::job {

void validate_optimizer(const Optimizer& optimizer, Checker& checker) {
  if (kind_of(optimizer) == nullptr) {
    checker.require(false, "optimizer", "one of " + kinds_of(*Optimizer::descriptor()));
  } else {
    const optim::AnyOptions kind = optimizer_kind(optimizer);
    const std::string path = join_path("optimizer", kind_of(optimizer)->name());
    checker.require_value(path + ".lr", "the learning rate");
    std::visit([&](const auto& options) { checker.adopt(problems_of(options), path); }, kind);
    checker.adopt(problems_beside(kind, optimizer_options(optimizer)), "optimizer");
  }
  for (int i = 0; i < optimizer.group_size(); ++i) {
    const std::string match = element_path("optimizer.group", i) + ".match";
    checker.require(!optimizer.group(i).match().empty(), match, "a regular expression for parameter names, \"bias$\"");
  }
  checker.adopt(problems_of(optimizer_options(optimizer)), "optimizer");
}

void validate_schedule(const Schedule& schedule, Checker& checker) {
  const auto* const kind = kind_of(schedule);
  if (kind == nullptr) return;
  if (schedule.has_step()) {
    checker.require(schedule.step().milestones_size() > 0, "schedule.step.milestones",
                    "the steps at which the rate falls, [1000, 2000]");
  }
  checker.adopt(problems_of(schedule_options(schedule)), join_path("schedule", kind->name()));
}

}  // namespace lockstep::job
