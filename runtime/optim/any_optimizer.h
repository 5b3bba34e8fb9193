// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <variant>
#include <vector>

#include "runtime/optim/adagrad.h"
#include "runtime/optim/adam.h"
#include "runtime/optim/lion.h"
#include "runtime/optim/rmsprop.h"
#include "runtime/optim/sgd.h"

namespace lockstep::optim {

using AnyOptions = std::variant<SgdOptions, AdamOptions, AdamwOptions, AdagradOptions, RmspropOptions, LionOptions,
                                LambOptions, NovogradOptions, LarsOptions>;

/// The optimizer of that kind, for these parameters. Throws as its constructor does.
std::unique_ptr<Optimizer> make(std::vector<nn::Parameter> parameters, const AnyOptions& kind,
                                const OptimizerOptions& more = {});

/// The options in `more` that an optimizer of that kind refuses.
FieldProblems problems_beside(const AnyOptions& kind, const OptimizerOptions& more);

}  // namespace lockstep::optim
