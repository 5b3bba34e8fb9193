// SPDX-License-Identifier: Apache-2.0
#include "runtime/optim/parameter_groups.h"

#include <regex>

#include "runtime/tensor/error.h"

namespace lockstep::optim {

std::vector<ParameterOptions> resolve_groups(const std::vector<ParameterGroup>& groups,
                                             const std::vector<nn::Parameter>& parameters, double weight_decay) {
  std::vector<std::regex> patterns;
  for (const ParameterGroup& group : groups) patterns.emplace_back(group.match);
  std::vector<bool> used(patterns.size(), false);
  std::vector<ParameterOptions> resolved;
  for (const nn::Parameter& parameter : parameters) {
    ParameterOptions options;
    options.weight_decay = parameter.kind == nn::ParameterKind::kWeight ? static_cast<float>(weight_decay) : 0.0f;
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      if (!std::regex_search(parameter.name, patterns[i])) continue;
      options.lr_scale = static_cast<float>(groups[i].lr_scale);
      if (groups[i].weight_decay) options.weight_decay = static_cast<float>(*groups[i].weight_decay);
      options.layer_adaptation = groups[i].layer_adaptation;
      used[i] = true;
      break;
    }
    resolved.push_back(options);
  }
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (used[i]) continue;
    std::string names;
    for (const nn::Parameter& parameter : parameters) names += (names.empty() ? "" : ", ") + parameter.name;
    throw FieldError("optimizer.group[" + std::to_string(i) + "].match",
                     "\"" + groups[i].match + "\" matches no parameter that an earlier group left",
                     "The parameters are " + names + ".");
  }
  return resolved;
}

}  // namespace lockstep::optim
