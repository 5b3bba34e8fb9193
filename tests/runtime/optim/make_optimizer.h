// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <vector>

#include "runtime/optim/adam.h"
#include "runtime/optim/sgd.h"

namespace lockstep::optim::testing {

/// An optimizer of parameters that are not known yet.
struct MakeOptimizer {
  const char* name;
  std::function<std::unique_ptr<Optimizer>(const std::vector<nn::Parameter>&)> of;
};

inline void PrintTo(const MakeOptimizer& make, std::ostream* out) { *out << make.name; }

inline MakeOptimizer with_sgd(const SgdOptions& options, const OptimizerOptions& more = {}) {
  return {"sgd", [=](const auto& parameters) { return sgd(parameters, options, more); }};
}
inline MakeOptimizer with_adam(const AdamOptions& options, const OptimizerOptions& more = {}) {
  return {"adam", [=](const auto& parameters) { return adam(parameters, options, more); }};
}
inline MakeOptimizer with_adamw(const AdamwOptions& options, const OptimizerOptions& more = {}) {
  return {"adamw", [=](const auto& parameters) { return adamw(parameters, options, more); }};
}

}  // namespace lockstep::optim::testing
