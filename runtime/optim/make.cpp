// SPDX-License-Identifier: Apache-2.0
#include <regex>

#include "runtime/optim/adam.h"
#include "runtime/optim/optimizer.h"
#include "runtime/optim/sgd.h"
#include "runtime/tensor/error.h"

namespace lockstep::optim {

namespace {

std::string path_of(std::size_t group) { return "optimizer.group[" + std::to_string(group) + "].match"; }

std::vector<std::regex> patterns_of(const job::Optimizer& config) {
  std::vector<std::regex> patterns;
  for (const job::ParameterGroup& group : config.group()) {
    try {
      patterns.emplace_back(group.match());
    } catch (const std::regex_error& wrong) {
      throw FieldError(path_of(patterns.size()), "\"" + group.match() + "\" is no regular expression: " + wrong.what());
    }
  }
  return patterns;
}

std::vector<ParameterOptions> resolve_groups(const job::Optimizer& config, const std::vector<nn::Parameter>& parameters,
                                             double weight_decay) {
  const std::vector<std::regex> patterns = patterns_of(config);
  std::vector<bool> used(patterns.size(), false);
  std::vector<ParameterOptions> resolved;
  for (const nn::Parameter& parameter : parameters) {
    ParameterOptions options;
    options.weight_decay = parameter.kind == nn::ParameterKind::kWeight ? static_cast<float>(weight_decay) : 0.0f;
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      if (!std::regex_search(parameter.name, patterns[i])) continue;
      const job::ParameterGroup& group = config.group(static_cast<int>(i));
      if (group.has_lr_scale()) options.lr_scale = static_cast<float>(group.lr_scale());
      if (group.has_weight_decay()) options.weight_decay = static_cast<float>(group.weight_decay());
      used[i] = true;
      break;
    }
    resolved.push_back(options);
  }
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (used[i]) continue;
    std::string names;
    for (const nn::Parameter& parameter : parameters) names += (names.empty() ? "" : ", ") + parameter.name;
    throw FieldError(
        path_of(i),
        "\"" + config.group(static_cast<int>(i)).match() + "\" matches no parameter that an earlier group left",
        "The parameters are " + names + ".");
  }
  return resolved;
}

std::unique_ptr<Optimizer> make_adam(const job::Adam& config, bool decoupled, std::vector<nn::Parameter> parameters,
                                     std::vector<ParameterOptions> per_parameter, const OptimizerOptions& options) {
  const kernels::AdamOptions adam{config.beta1(), config.beta2(), config.epsilon(), decoupled};
  return std::make_unique<Adam>(std::move(parameters), std::move(per_parameter), options, adam);
}

}  // namespace

std::unique_ptr<Optimizer> make(const job::Optimizer& config, const std::vector<nn::Parameter>& parameters) {
  OptimizerOptions options;
  options.clip_norm = config.clip_norm();
  options.clip_value = config.clip_value();
  switch (config.kind_case()) {
    case job::Optimizer::kSgd: {
      const job::Sgd& sgd = config.sgd();
      options.lr = sgd.lr();
      return std::make_unique<Sgd>(
          parameters, resolve_groups(config, parameters, sgd.weight_decay()), options,
          kernels::SgdOptions{static_cast<float>(sgd.momentum()), static_cast<float>(sgd.dampening()), sgd.nesterov()});
    }
    case job::Optimizer::kAdam:
    case job::Optimizer::kAdamw: {
      const bool decoupled = config.has_adamw();
      const job::Adam& adam = decoupled ? config.adamw() : config.adam();
      options.lr = adam.lr();
      return make_adam(adam, decoupled, parameters, resolve_groups(config, parameters, adam.weight_decay()), options);
    }
    case job::Optimizer::KIND_NOT_SET:
      break;
  }
  throw FieldError("optimizer", "none is named", "Name one of sgd, adam, adamw.");
}

}  // namespace lockstep::optim
