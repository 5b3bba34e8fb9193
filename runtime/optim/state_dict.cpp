// SPDX-License-Identifier: Apache-2.0
#include "runtime/optim/state_dict.h"

#include <algorithm>

namespace lockstep::optim {

namespace {

constexpr const char* kAppliedSteps = "applied_steps";

}  // namespace

nn::StateDict state_dict(const Optimizer& optimizer) {
  nn::StateDict state;
  const std::vector<nn::Arena*> arenas = optimizer.arenas();
  std::int64_t number = 0;
  for (const Optimizer::Slot& slot : optimizer.slots()) {
    const auto model = std::ranges::find(arenas, slot.arena) - arenas.begin();
    const std::string prefix = arenas.size() > 1 ? std::to_string(model) + "/" : std::string();
    const nn::Parameter& parameter = slot.parameter();
    state[prefix + "step/" + parameter.name] = optimizer.parameter_steps().rows(number, number + 1);
    for (const auto& [name, numbers] : optimizer.parameter_state()) {
      state[prefix + name + "/" + parameter.name] = numbers.rows(number, number + 1);
    }
    ++number;
    for (const auto& [name, flat] : optimizer.state()) {
      state[prefix + name + "/" + parameter.name] = flat.rows(slot.begin, slot.end).reshaped(parameter.tensor.shape());
    }
  }
  state[kAppliedSteps] = Tensor::from<std::int64_t>({optimizer.applied_steps()}, {1});
  return state;
}

nn::StateDifferences load_state_dict(Optimizer& optimizer, const nn::StateDict& state, bool strict) {
  const nn::StateDict into = state_dict(optimizer);
  nn::StateDifferences found = nn::load_state(into, state, strict, "the optimizer");
  optimizer.set_applied_steps(static_cast<std::int64_t>(into.at(kAppliedSteps).item()));
  return found;
}

}  // namespace lockstep::optim
