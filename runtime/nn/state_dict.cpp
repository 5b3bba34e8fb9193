// SPDX-License-Identifier: Apache-2.0
#include "runtime/nn/state_dict.h"

#include "runtime/base/error.h"
#include "runtime/kernels/assign.h"
#include "runtime/nn/arena.h"

namespace lockstep::nn {

namespace {

bool fits(const Tensor& into, const Tensor& from) {
  if (into.shape() != from.shape()) return false;
  return into.dtype() == from.dtype() || (is_floating(into.dtype()) && is_floating(from.dtype()));
}

StateDifferences differences(const StateDict& into, const StateDict& state) {
  StateDifferences found;
  for (const auto& [name, tensor] : state) require_defined(tensor, "load_state_dict", name);
  for (const auto& [name, tensor] : into) {
    const auto mine = state.find(name);
    if (mine == state.end()) {
      found.missing.push_back(name);
    } else if (!fits(tensor, mine->second)) {
      found.misshaped.push_back(name + ": " + describe(mine->second) + " for " + describe(tensor));
    }
  }
  for (const auto& [name, tensor] : state) {
    if (!into.contains(name)) found.unexpected.push_back(name);
  }
  return found;
}

std::string lines_of(const char* kind, const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text.append("\n  ").append(kind).append(": ").append(name);
  return text;
}

void copy(const Tensor& from, const Tensor& to) {
  if (from.dtype() == to.dtype()) return to.copy_from(from.detach());
  const Tensor here = from.detach().to(to.device());
  kernels::cast(here, to);
  to.bump_version();
}

}  // namespace

StateDict state_dict(Module& model) {
  StateDict state;
  if (model.arena()) {
    for (const Arena::Slot& slot : model.arena()->slots()) {
      state[slot.parameter.name] = model.arena()->master(slot);
    }
  } else {
    for (const Parameter& parameter : model.parameters()) state[parameter.name] = parameter.tensor.detach();
  }
  for (const auto& [name, statistics] : model.statistics()) state[name] = statistics->committed();
  return state;
}

StateDifferences load_state(const StateDict& into, const StateDict& state, bool strict, const std::string& what) {
  StateDifferences found = differences(into, state);
  if (strict && !found.empty()) {
    throw UsageError("the state does not fit " + what +
                         ", and nothing was loaded:" + lines_of("missing", found.missing) +
                         lines_of("unexpected", found.unexpected) + lines_of("misshaped", found.misshaped),
                     "Load it into what it was saved from, or what fits with strict = false.");
  }
  for (const auto& [name, tensor] : into) {
    const auto mine = state.find(name);
    if (mine != state.end() && fits(tensor, mine->second)) copy(mine->second, tensor);
  }
  return found;
}

StateDifferences load_state_dict(Module& model, const StateDict& state, bool strict) {
  StateDifferences found = load_state(state_dict(model), state, strict, "the model");
  if (model.arena()) model.arena()->refresh_copies();
  return found;
}

}  // namespace lockstep::nn
