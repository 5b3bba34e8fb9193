// SPDX-License-Identifier: Apache-2.0
#include "runtime/optim/parameter_groups.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/base/name_pattern.h"

namespace lockstep::optim {

namespace {

bool contains(const std::vector<nn::Parameter>& all, const nn::Parameter& parameter) {
  return std::ranges::any_of(all, [&](const nn::Parameter& each) { return each.tensor.is(parameter.tensor); });
}

/// The set of parameters that a group names.
class Members {
 public:
  explicit Members(const ParameterGroup& group) : group_(group), pattern_(group.match) {}
  bool contain(const nn::Parameter& parameter) const {
    if (!group_.parameters.empty()) return contains(group_.parameters, parameter);
    return pattern_.is_in(parameter.name);
  }

 private:
  const ParameterGroup& group_;
  NamePattern pattern_;
};

std::string path_of(std::size_t group) { return "optimizer.group[" + std::to_string(group) + "]."; }

void require_known(const std::vector<ParameterGroup>& groups, const std::vector<nn::Parameter>& parameters) {
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (const nn::Parameter& parameter : groups[i].parameters) {
      if (contains(parameters, parameter)) continue;
      throw FieldError(path_of(i) + "parameters", "the optimizer does not have parameter " + parameter.name,
                       "Give the optimizer the parameters of all its groups.");
    }
  }
}

[[noreturn]] void refuse_unused(std::size_t i, const ParameterGroup& group,
                                const std::vector<nn::Parameter>& parameters) {
  std::string names;
  for (const nn::Parameter& parameter : parameters) names += (names.empty() ? "" : ", ") + parameter.name;
  const bool listed = !group.parameters.empty();
  throw FieldError(
      path_of(i) + (listed ? "parameters" : "match"),
      (listed ? "names" : "\"" + group.match + "\" matches") + std::string(" no parameter that an earlier group left"),
      "The parameters are " + names + ".");
}

}  // namespace

std::vector<ParameterOptions> resolve_groups(const std::vector<ParameterGroup>& groups,
                                             const std::vector<nn::Parameter>& parameters, double lr,
                                             double weight_decay) {
  require_known(groups, parameters);
  const std::vector<Members> members(groups.begin(), groups.end());
  std::vector<bool> used(groups.size(), false);
  std::vector<ParameterOptions> resolved;
  for (const nn::Parameter& parameter : parameters) {
    ParameterOptions options;
    options.weight_decay = parameter.kind == nn::ParameterKind::kWeight ? static_cast<float>(weight_decay) : 0.0f;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (!members[i].contain(parameter)) continue;
      options.lr_scale = static_cast<float>(groups[i].lr ? *groups[i].lr / lr : groups[i].lr_scale);
      if (groups[i].weight_decay) options.weight_decay = static_cast<float>(*groups[i].weight_decay);
      options.layer_adaptation = groups[i].layer_adaptation;
      options.frozen = groups[i].frozen;
      options.freeze_statistics = groups[i].freeze_statistics;
      used[i] = true;
      break;
    }
    resolved.push_back(options);
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (!used[i]) refuse_unused(i, groups[i], parameters);
  }
  return resolved;
}

}  // namespace lockstep::optim
