// SPDX-License-Identifier: Apache-2.0
#include "runtime/autograd/grad_mode.h"

namespace lockstep::autograd {

namespace {
thread_local bool enabled_on_this_thread = true;
}

bool grad_enabled() { return enabled_on_this_thread; }

GradMode::GradMode(bool enabled) : previous_(enabled_on_this_thread) { enabled_on_this_thread = enabled; }

GradMode::~GradMode() { enabled_on_this_thread = previous_; }

}  // namespace lockstep::autograd
