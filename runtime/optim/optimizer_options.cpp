// SPDX-License-Identifier: Apache-2.0
#include "runtime/optim/optimizer_options.h"

#include "runtime/base/name_pattern.h"
#include "runtime/base/option_checks.h"

namespace lockstep::optim {

namespace {

void check_match(const std::string& match, const std::string& field, FieldChecks& checks) {
  if (match.empty()) return checks.error(field, "must be a regular expression for parameter names, \"bias$\"");
  const std::string problem = NamePattern::problem_of(match);
  if (!problem.empty()) checks.error(field, "\"" + match + "\" is no regular expression: " + problem);
}

}  // namespace

FieldProblems problems_of(const OptimizerOptions& options) {
  FieldChecks checks;
  check_fields(options, checks);
  for (std::size_t i = 0; i < options.groups.size(); ++i) {
    const ParameterGroup& group = options.groups[i];
    const std::string at = "group[" + std::to_string(i) + "].";
    if (group.parameters.empty()) {
      check_match(group.match, at + "match", checks);
    } else if (!group.match.empty()) {
      checks.error(at + "match", "names parameters of a group that has a list of them");
    }
    if (group.freeze_statistics && !group.frozen) {
      checks.error(at + "freeze_statistics", "is for a frozen group", {at + "frozen"});
    }
    if (!group.lr) continue;
    checks.not_negative(*group.lr, at + "lr");
    if (group.lr_scale != 1) checks.error(at + "lr", "and lr_scale contradict each other", {at + "lr_scale"});
  }
  return checks.problems();
}

FieldProblems problems_of(const LambOptions& options) { return problems_in_fields(options); }
FieldProblems problems_of(const NovogradOptions& options) { return problems_in_fields(options); }

FieldProblems problems_of(const LarsOptions& options) {
  FieldChecks checks;
  check_fields(options, checks);
  if (options.nesterov && options.momentum == 0) checks.error("nesterov", "needs momentum > 0", {"momentum"});
  return checks.problems();
}

FieldProblems problems_without_larc(const OptimizerOptions& options) {
  FieldChecks checks;
  if (options.larc) {
    checks.error("larc",
                 "cannot be used with lamb, lars and novograd, which find a rate for each parameter themselves, "
                 "nor with lion, whose steps are all of one size");
  }
  return checks.problems();
}

const OptimizerOptions& without_larc(const OptimizerOptions& options) {
  require_none(problems_without_larc(options), "optimizer");
  return options;
}

}  // namespace lockstep::optim
