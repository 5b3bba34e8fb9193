// SPDX-License-Identifier: Apache-2.0
#include "runtime/nn/step_context.h"

#include <utility>

namespace lockstep::nn {

namespace {
thread_local StepContext::Values on_this_thread;
thread_local StepContext* innermost = nullptr;
}  // namespace

StepContext::StepContext(const Values& values)
    : previous_(std::exchange(on_this_thread, values)), outer_(std::exchange(innermost, this)) {}

StepContext::StepContext(std::uint64_t step, std::int64_t first_sample)
    : StepContext(Values{.named = true, .step = step, .first_sample = first_sample}) {}

StepContext::StepContext(std::uint64_t seed, std::uint64_t step, std::int64_t first_sample)
    : StepContext(Values{.named = true, .seed = seed, .step = step, .first_sample = first_sample}) {}

StepContext::StepContext(const kernels::StepPosition* position)
    : StepContext(Values{.named = true, .position = position}) {}

StepContext::StepContext(const Place& place) : StepContext(place.values) {
  on_this_thread.again = true;
  calls_ = place.calls;
}

StepContext::~StepContext() {
  on_this_thread = previous_;
  innermost = outer_;
}

StepContext::Values StepContext::current() { return on_this_thread; }

std::uint32_t StepContext::next_call(std::uint32_t layer) { return innermost ? innermost->calls_[layer]++ : 0; }

StepContext::Place StepContext::place() {
  return {on_this_thread, innermost ? innermost->calls_ : decltype(Place::calls){}};
}

FirstSample::FirstSample(std::int64_t first_sample)
    : previous_(std::exchange(on_this_thread.first_sample, first_sample)) {}

FirstSample::~FirstSample() { on_this_thread.first_sample = previous_; }

}  // namespace lockstep::nn
