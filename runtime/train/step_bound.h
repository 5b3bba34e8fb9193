// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "runtime/train/step_profile.h"

namespace lockstep::train {

/// What bounds a step, and the first thing to change.
struct StepBound {
  std::string name;  ///< "data", "straggler", "communication", "overhead", "products", "memory", "optimizer", "none"
  std::string sentence;
};

/// By the first of the rules that step_bound.cpp lists which holds.
StepBound bound_of(const StepProfile& profile);

}  // namespace lockstep::train
