// SPDX-License-Identifier: Apache-2.0
#include "runtime/optim/element_optimizer.h"

#include "runtime/kernels/arena.h"

namespace lockstep::optim {

std::vector<std::string> ElementOptimizer::state_names() const {
  std::vector<std::string> names;
  for (const ElementState& state : element_states_) names.push_back(state.name);
  return names;
}

void ElementOptimizer::allocate_state() {
  tensors_.clear();
  for (const ElementState& state : element_states_) tensors_.push_back(add_state(state.name, state.start));
}

void ElementOptimizer::update(const kernels::ArenaSlice& slice, const kernels::StepScalars& scalars) {
  std::vector<Tensor> states;
  for (const Tensor& tensor : tensors_) states.push_back(in_slice(tensor));
  kernels::ArenaSteps::on(slice.master.device()).element_step(slice, rule_, scalars, states);
}

}  // namespace lockstep::optim
