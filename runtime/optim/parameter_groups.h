// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "runtime/nn/parameter.h"
#include "runtime/optim/optimizer_options.h"

namespace lockstep::optim {

/// How one parameter is updated.
struct ParameterOptions {
  float lr_scale = 1.0f;
  float weight_decay = 0.0f;
  std::optional<bool> layer_adaptation = {};  ///< default: the optimizer's
  bool frozen = false;
  bool freeze_statistics = false;
};

/// The options of each parameter, as the groups say, in the parameters' order. `lr` is the optimizer's, `weight_decay`
/// that of weights that no group names. Throws FieldError for a group that names none of the parameters that the groups
/// before it left, and for one with a parameter that the optimizer does not have.
std::vector<ParameterOptions> resolve_groups(const std::vector<ParameterGroup>& groups,
                                             const std::vector<nn::Parameter>& parameters, double lr,
                                             double weight_decay);

}  // namespace lockstep::optim
