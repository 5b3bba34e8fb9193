// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <regex>

#include "runtime/job/validate_parts.h"

namespace lockstep::job {

namespace {

constexpr std::size_t kLongestExpression = 256;

void check(const Sgd& sgd, Checker& checker) {
  const std::string path = "optimizer.sgd";
  checker.required_positive(sgd.lr(), path + ".lr", "the learning rate");
  checker.fraction(sgd.momentum(), path + ".momentum");
  checker.not_negative(sgd.weight_decay(), path + ".weight_decay");
  checker.fraction(sgd.dampening(), path + ".dampening");
  const bool trusted = checker.trusts({path + ".momentum", path + ".dampening"});
  if (trusted && sgd.nesterov() && (sgd.momentum() == 0 || sgd.dampening() != 0)) {
    checker.error(path + ".nesterov", "needs momentum > 0 and dampening 0");
  }
}

void check(const Adam& adam, const std::string& path, Checker& checker) {
  checker.required_positive(adam.lr(), path + ".lr", "the learning rate");
  checker.fraction(adam.beta1(), path + ".beta1");
  checker.fraction(adam.beta2(), path + ".beta2");
  checker.positive(adam.epsilon(), path + ".epsilon");
  checker.not_negative(adam.weight_decay(), path + ".weight_decay");
}

void check(const ParameterGroup& group, const std::string& path, Checker& checker) {
  const std::string match = path + ".match";
  if (group.has_lr_scale()) checker.not_negative(group.lr_scale(), path + ".lr_scale");
  if (group.has_weight_decay()) checker.not_negative(group.weight_decay(), path + ".weight_decay");
  if (!checker.require(!group.match().empty(), match, "a regular expression for parameter names, \"bias$\"")) return;
  if (group.match().size() > kLongestExpression) {
    return checker.error(match, "has more than " + std::to_string(kLongestExpression) + " characters");
  }
  try {
    const std::regex expression(group.match());
  } catch (const std::regex_error& wrong) {
    checker.error(match, "\"" + group.match() + "\" is no regular expression: " + wrong.what());
  }
}

void check_milestones(const StepSchedule& step, Checker& checker) {
  const std::string path = "schedule.step.milestones";
  if (!checker.require(step.milestones_size() > 0, path, "the steps at which the rate falls, [1000, 2000]")) return;
  const auto& milestones = step.milestones();
  if (!std::ranges::is_sorted(milestones, std::less_equal<>()) || milestones[0] == 0) {
    checker.error(path, "must be > 0 and ascending");
  }
}

}  // namespace

void validate_optimizer(const Optimizer& optimizer, Checker& checker) {
  switch (optimizer.kind_case()) {
    case Optimizer::kSgd:
      check(optimizer.sgd(), checker);
      break;
    case Optimizer::kAdam:
      check(optimizer.adam(), "optimizer.adam", checker);
      break;
    case Optimizer::kAdamw:
      check(optimizer.adamw(), "optimizer.adamw", checker);
      break;
    case Optimizer::KIND_NOT_SET:
      checker.require(false, "optimizer", "one of sgd, adam, adamw");
  }
  if (optimizer.has_clip_norm()) checker.positive(optimizer.clip_norm(), "optimizer.clip_norm");
  if (optimizer.has_clip_value()) checker.positive(optimizer.clip_value(), "optimizer.clip_value");
  for (int i = 0; i < optimizer.group_size(); ++i) {
    check(optimizer.group(i), element_path("optimizer.group", i), checker);
  }
}

void validate_schedule(const Schedule& schedule, Checker& checker) {
  if (schedule.has_step()) {
    check_milestones(schedule.step(), checker);
    checker.positive(schedule.step().gamma(), "schedule.step.gamma");
  }
  if (schedule.has_cosine()) {
    checker.not_negative(schedule.cosine().final_fraction(), "schedule.cosine.final_fraction");
  }
  if (schedule.has_linear()) {
    checker.not_negative(schedule.linear().final_fraction(), "schedule.linear.final_fraction");
  }
}

}  // namespace lockstep::job
