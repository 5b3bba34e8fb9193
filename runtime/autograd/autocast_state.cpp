// SPDX-License-Identifier: Apache-2.0
#include "runtime/autograd/autocast_state.h"

namespace lockstep::autograd {

AutocastState& autocast_state() {
  thread_local AutocastState state;
  return state;
}

}  // namespace lockstep::autograd
