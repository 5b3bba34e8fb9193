// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/nn/module.h"

namespace lockstep::nn {

/// Tensors by name.
using StateDict = std::map<std::string, Tensor>;

/// The model's parameters, as their float32 masters where amp::initialize made some, and its running statistics, by
/// their paths. They are views: copy them to keep them, as tensor.to(kCpu) of a GPU's tensors does.
[[nodiscard]] StateDict state_dict(Module& model);

/// How a state differs from what it was loaded into.
struct StateDifferences {
  std::vector<std::string> missing;     ///< names that the state lacks
  std::vector<std::string> unexpected;  ///< names that nothing asked for
  std::vector<std::string> misshaped;   ///< names whose shape is another, or whose dtype is no floating one as theirs

  bool empty() const { return missing.empty() && unexpected.empty() && misshaped.empty(); }
};

/// Copies a state into the model, from any device, and rounds 16-bit weights anew. A tensor that fits is taken whatever
/// its floating dtype. `strict`: throws UsageError that lists every name that is missing, unexpected or misshaped,
/// before anything is written; otherwise what fits is loaded and the rest returned.
StateDifferences load_state_dict(Module& model, const StateDict& state, bool strict = true);

/// load_state_dict() into any tensors, `into`; `what` names them in the message: "the model".
StateDifferences load_state(const StateDict& into, const StateDict& state, bool strict, const std::string& what);

}  // namespace lockstep::nn
