// SPDX-License-Identifier: Apache-2.0
#include "runtime/optim/optimizer_options.h"

#include "runtime/base/name_pattern.h"

namespace lockstep::optim {

namespace {

void check_match(const std::string& match, const std::string& field, FieldChecks& checks) {
  if (match.empty()) return checks.error(field, "must be a regular expression for parameter names, \"bias$\"");
  const std::string problem = NamePattern::problem_of(match);
  if (!problem.empty()) checks.error(field, "\"" + match + "\" is no regular expression: " + problem);
}

/// Of SGD and LARS.
template <class Options>
void check_momentum(const Options& options, FieldChecks& checks) {
  checks.positive(options.lr, "lr");
  checks.fraction(options.momentum, "momentum");
  checks.not_negative(options.weight_decay, "weight_decay");
}

/// Of Adam and its kin.
template <class Options>
FieldProblems problems_of_moments(const Options& options) {
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
  if (options.larc) {
    checks.positive(options.larc->trust_coefficient, "larc.trust_coefficient");
    checks.not_negative(options.larc->epsilon, "larc.epsilon");
  }
  return checks.problems();
}

FieldProblems problems_of(const SgdOptions& options) {
  FieldChecks checks;
  check_momentum(options, checks);
  checks.fraction(options.dampening, "dampening");
  if (options.nesterov && (options.momentum == 0 || options.dampening != 0)) {
    checks.error("nesterov", "needs momentum > 0 and dampening 0", {"momentum", "dampening"});
  }
  return checks.problems();
}

FieldProblems problems_of(const AdamOptions& options) { return problems_of_moments(options); }
FieldProblems problems_of(const AdamwOptions& options) { return problems_of_moments(options); }

FieldProblems problems_of(const AdagradOptions& options) {
  FieldChecks checks;
  checks.positive(options.lr, "lr");
  checks.not_negative(options.lr_decay, "lr_decay");
  checks.not_negative(options.weight_decay, "weight_decay");
  checks.not_negative(options.initial_accumulator_value, "initial_accumulator_value");
  checks.positive(options.epsilon, "epsilon");
  return checks.problems();
}

FieldProblems problems_of(const LambOptions& options) {
  FieldProblems problems = problems_of_moments(options);
  FieldChecks checks;
  checks.not_negative(options.max_grad_norm, "max_grad_norm");
  problems.insert(problems.end(), checks.problems().begin(), checks.problems().end());
  return problems;
}

FieldProblems problems_of(const NovogradOptions& options) { return problems_of_moments(options); }

FieldProblems problems_of(const LarsOptions& options) {
  FieldChecks checks;
  check_momentum(options, checks);
  checks.positive(options.trust_coefficient, "trust_coefficient");
  checks.not_negative(options.epsilon, "epsilon");
  if (options.nesterov && options.momentum == 0) checks.error("nesterov", "needs momentum > 0", {"momentum"});
  return checks.problems();
}

FieldProblems problems_beside_norms(const OptimizerOptions& options) {
  FieldChecks checks;
  if (options.larc) {
    checks.error("larc", "needs sgd, adam, adamw or adagrad: lamb, lars and novograd look at norms themselves");
  }
  return checks.problems();
}

const OptimizerOptions& without_larc(const OptimizerOptions& options) {
  require_none(problems_beside_norms(options), "optimizer");
  return options;
}

}  // namespace lockstep::optim
