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
};

/// What the groups make of each parameter, in the parameters' order. `weight_decay` is that of weights that no group
/// names. Throws FieldError for a group that matches none of the parameters that the groups before it left.
std::vector<ParameterOptions> resolve_groups(const std::vector<ParameterGroup>& groups,
                                             const std::vector<nn::Parameter>& parameters, double weight_decay);

}  // namespace lockstep::optim
