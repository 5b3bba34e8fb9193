// SPDX-License-Identifier: Apache-2.0
#include "runtime/job/validate_parts.h"

#include "configs/job.pb.h"
#include "runtime/job/check_given.h"
#include "runtime/job/message_options.h"
#include "runtime/job/model_options.h"
#include "runtime/job/training_options.h"

namespace lockstep::job {

void validate_model(const Model& model, const Model& written, Checker& checker) {
  if (!checker.require(kind_of(model) != nullptr, "model", "one of " + kinds_of(*Model::descriptor()))) return;
  check_given_kind<model_zoo::ModelOptions>(written, "model", checker);
  const auto adopt = [&](const auto& options) {
    checker.adopt(problems_of(options), "model." + kind_of(model)->name());
  };
  std::visit(adopt, model_options(model));
}

void validate_amp(const Amp& amp, Checker& checker) {
  if (amp.has_loss_scale()) {
    const std::string path = "amp.loss_scale";
    checker.adopt(problems_of(grad_scaler_options(amp.loss_scale())), path);
    // A run that skips for ever is never meant.
    checker.at_least_one(amp.loss_scale().max_consecutive_skips(), path + ".max_consecutive_skips");
  }
  checker.adopt(problems_of(amp_options(amp)), "amp");
}

void validate_optimizer(const Optimizer& optimizer, const Optimizer& written, Checker& checker) {
  const auto* const kind = kind_of(optimizer);
  if (checker.require(kind != nullptr, "optimizer", "one of " + kinds_of(*Optimizer::descriptor()))) {
    check_given_kind<optim::AnyOptions>(written, "optimizer", checker);
    const optim::AnyOptions options = optimizer_kind(optimizer);
    const std::string path = join_path("optimizer", kind->name());
    std::visit([&](const auto& of_kind) { checker.adopt(problems_of(of_kind), path); }, options);
    checker.adopt(problems_beside(options, optimizer_options(optimizer)), "optimizer");
  }
  for (int i = 0; i < optimizer.group_size(); ++i) {
    const std::string match = element_path("optimizer.group", i) + ".match";
    checker.require(!optimizer.group(i).match().empty(), match, "a regular expression for parameter names, \"bias$\"");
  }
  checker.adopt(problems_of(optimizer_options(optimizer)), "optimizer");
}

void validate_schedule(const Schedule& schedule, const Schedule& written, Checker& checker) {
  const auto* const kind = kind_of(schedule);
  if (kind == nullptr) return;
  check_given_kind<optim::ScheduleOptions>(written, "schedule", checker);
  checker.adopt(problems_of(schedule_options(schedule)), join_path("schedule", kind->name()));
}

}  // namespace lockstep::job
