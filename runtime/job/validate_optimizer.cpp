// SPDX-License-Identifier: Apache-2.0
#include "configs/job.pb.h"
#include "runtime/job/training_options.h"
#include "runtime/job/validate_parts.h"

namespace lockstep::job {

namespace {

template <class Options>
void check(const Options& options, const std::string& kind, Checker& checker) {
  checker.require_value(kind + ".lr", "the learning rate");
  checker.adopt(problems_of(options), kind);
}

}  // namespace

void validate_optimizer(const Optimizer& optimizer, Checker& checker) {
  switch (optimizer.kind_case()) {
    case Optimizer::kSgd:
      check(sgd_options(optimizer.sgd()), "optimizer.sgd", checker);
      break;
    case Optimizer::kAdam:
      check(adam_options(optimizer.adam()), "optimizer.adam", checker);
      break;
    case Optimizer::kAdamw:
      check(adamw_options(optimizer.adamw()), "optimizer.adamw", checker);
      break;
    case Optimizer::kAdagrad:
      check(adagrad_options(optimizer.adagrad()), "optimizer.adagrad", checker);
      break;
    case Optimizer::kLamb:
      check(lamb_options(optimizer.lamb()), "optimizer.lamb", checker);
      break;
    case Optimizer::kNovograd:
      check(novograd_options(optimizer.novograd()), "optimizer.novograd", checker);
      break;
    case Optimizer::kLars:
      check(lars_options(optimizer.lars()), "optimizer.lars", checker);
      break;
    case Optimizer::KIND_NOT_SET:
      checker.require(false, "optimizer", "one of sgd, adam, adamw, adagrad, lamb, novograd, lars");
  }
  for (int i = 0; i < optimizer.group_size(); ++i) {
    const std::string match = element_path("optimizer.group", i) + ".match";
    checker.require(!optimizer.group(i).match().empty(), match, "a regular expression for parameter names, \"bias$\"");
  }
  checker.adopt(problems_of(optimizer_options(optimizer)), "optimizer");
  if (optimizer.has_lamb() || optimizer.has_lars() || optimizer.has_novograd()) {
    checker.adopt(problems_beside_norms(optimizer_options(optimizer)), "optimizer");
  }
}

void validate_schedule(const Schedule& schedule, Checker& checker) {
  const char* kind = "";
  switch (schedule.kind_case()) {
    case Schedule::kConstant:
      kind = "constant";
      break;
    case Schedule::kStep:
      kind = "step";
      checker.require(schedule.step().milestones_size() > 0, "schedule.step.milestones",
                      "the steps at which the rate falls, [1000, 2000]");
      break;
    case Schedule::kCosine:
      kind = "cosine";
      break;
    case Schedule::kLinear:
      kind = "linear";
      break;
    case Schedule::KIND_NOT_SET:
      return;
  }
  checker.adopt(problems_of(schedule_options(schedule)), join_path("schedule", kind));
}

}  // namespace lockstep::job
