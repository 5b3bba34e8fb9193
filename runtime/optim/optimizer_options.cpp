// SPDX-License-Identifier: Apache-2.0
#include "runtime/optim/optimizer_options.h"

#include <regex>

namespace lockstep::optim {

namespace {

/// The library's expressions recurse: a long one may exhaust the stack.
constexpr std::size_t kLongestExpression = 256;

void check_match(const std::string& match, const std::string& field, FieldChecks& checks) {
  if (match.empty()) return checks.error(field, "must be a regular expression for parameter names, \"bias$\"");
  if (match.size() > kLongestExpression) {
    return checks.error(field, "has more than " + std::to_string(kLongestExpression) + " characters");
  }
  try {
    const std::regex expression(match);
  } catch (const std::regex_error& wrong) {
    checks.error(field, "\"" + match + "\" is no regular expression: " + wrong.what());
  }
}

template <class Options>
FieldProblems problems_of_adam(const Options& options) {
  FieldChecks checks;
  checks.positive(options.lr, "lr");
  checks.fraction(options.beta1, "beta1");
  checks.fraction(options.beta2, "beta2");
  checks.positive(options.epsilon, "epsilon");
  checks.not_negative(options.weight_decay, "weight_decay");
  return checks.problems();
}

}  // namespace

FieldProblems problems_of(const OptimizerOptions& options) {
  FieldChecks checks;
  if (options.clip_norm) checks.positive(*options.clip_norm, "clip_norm");
  if (options.clip_value) checks.positive(*options.clip_value, "clip_value");
  for (std::size_t i = 0; i < options.groups.size(); ++i) {
    const ParameterGroup& group = options.groups[i];
    const std::string at = "group[" + std::to_string(i) + "].";
    checks.not_negative(group.lr_scale, at + "lr_scale");
    if (group.weight_decay) checks.not_negative(*group.weight_decay, at + "weight_decay");
    if (group.parameters.empty()) {
      check_match(group.match, at + "match", checks);
    } else if (!group.match.empty()) {
      checks.error(at + "match", "names parameters of a group that has a list of them");
    }
    if (!group.lr) continue;
    checks.not_negative(*group.lr, at + "lr");
    if (group.lr_scale != 1) checks.error(at + "lr", "and lr_scale contradict each other", {at + "lr_scale"});
  }
  return checks.problems();
}

FieldProblems problems_of(const SgdOptions& options) {
  FieldChecks checks;
  checks.positive(options.lr, "lr");
  checks.fraction(options.momentum, "momentum");
  checks.not_negative(options.weight_decay, "weight_decay");
  checks.fraction(options.dampening, "dampening");
  if (options.nesterov && (options.momentum == 0 || options.dampening != 0)) {
    checks.error("nesterov", "needs momentum > 0 and dampening 0", {"momentum", "dampening"});
  }
  return checks.problems();
}

FieldProblems problems_of(const AdamOptions& options) { return problems_of_adam(options); }
FieldProblems problems_of(const AdamwOptions& options) { return problems_of_adam(options); }

}  // namespace lockstep::optim
