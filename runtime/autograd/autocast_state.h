// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/tensor/dtype.h"

namespace lockstep::autograd {

/// The state that amp::Autocast sets on a thread. It is declared here because an operation's backward runs in the state
/// of its forward, whatever is set where backward() is called.
struct AutocastState {
  bool enabled = false;
  DType dtype = DType::kFloat16;  ///< of lower-precision operations
};

/// The calling thread's state.
AutocastState& autocast_state();

/// Sets the state on this thread while it lives.
class [[nodiscard]] ScopedAutocastState {
 public:
  [[nodiscard]] explicit ScopedAutocastState(AutocastState state) : previous_(autocast_state()) {
    autocast_state() = state;
  }
  ~ScopedAutocastState() { autocast_state() = previous_; }
  ScopedAutocastState(const ScopedAutocastState&) = delete;
  ScopedAutocastState& operator=(const ScopedAutocastState&) = delete;

 private:
  AutocastState previous_;
};

}  // namespace lockstep::autograd
