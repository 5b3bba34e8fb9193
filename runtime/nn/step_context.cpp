// SPDX-License-Identifier: Apache-2.0
#include "runtime/nn/step_context.h"

namespace lockstep::nn {

namespace {
thread_local StepContext::Values on_this_thread;
}

StepContext::StepContext(std::uint64_t seed, std::uint64_t step, std::int64_t first_sample)
    : previous_(on_this_thread) {
  on_this_thread = {seed, step, first_sample, nullptr};
}

StepContext::StepContext(std::uint64_t seed, const kernels::StepPosition* position) : previous_(on_this_thread) {
  on_this_thread = {seed, 0, 0, position};
}

StepContext::~StepContext() { on_this_thread = previous_; }

StepContext::Values StepContext::current() { return on_this_thread; }

}  // namespace lockstep::nn
