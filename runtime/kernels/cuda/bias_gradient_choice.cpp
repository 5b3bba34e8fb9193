// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/bias_gradient_choice.h"

#include <spdlog/spdlog.h>

#include <vector>

#include "runtime/base/error.h"
#include "runtime/kernels/cuda/plan_machine.h"
#include "runtime/kernels/cuda/timing.h"
#include "runtime/kernels/plan_cache/timed_choice.h"
#include "runtime/kernels/versions.h"
#include "runtime/tensor/cuda/stream.h"

namespace lockstep::kernels::cuda {

namespace {

/// Shapes without end must not fill the memory.
constexpr std::size_t kCapacity = 4096;

constexpr const char* kTogether = "together";
constexpr const char* kApart = "apart";

/// Milliseconds; nothing where the way does not run.
std::optional<float> time_of_way(const Timer& timer, const std::function<bool()>& way) {
  try {
    bool runs = true;
    const float time = timer.milliseconds_of([&] { runs = way() && runs; });
    if (runs) return time;
  } catch (const MemoryError& error) {
    spdlog::debug("no candidate: {}", error.what());
  }
  return {};
}

}  // namespace

BiasGradientChoice::BiasGradientChoice(Device device) : device_(device) {
  const PlanSettings settings = plan_settings();
  if (!settings.autotune) return;
  machine_ = plan_machine("cublas-" + cublas_version(), device);
  cache_.emplace(plan_cache_of(machine_, settings.folder));
}

bool BiasGradientChoice::together(const MatmulProblem& problem, const std::function<Ways()>& make_ways) {
  if (!cache_) return true;
  const std::lock_guard lock(mutex_);
  if (const auto found = known_.find(problem); found != known_.end()) return found->second;
  if (known_.size() >= kCapacity) known_.clear();
  return known_.emplace(problem, choose(problem, make_ways)).first->second;
}

bool BiasGradientChoice::choose(const MatmulProblem& problem, const std::function<Ways()>& make_ways) const {
  const auto measure = [&] {
    const Timer timer(device_);
    Ways ways;
    try {
      ways = make_ways();
    } catch (const MemoryError& error) {  // no room for a second product
      spdlog::debug("who sums the gradient of a bias is not timed: {}", error.what());
      return std::vector<TimedCandidate>{};
    }
    const auto apart = [&ways] {
      ways.apart();
      return true;
    };
    return std::vector<TimedCandidate>{{kTogether, time_of_way(timer, ways.together)},
                                       {kApart, time_of_way(timer, apart)}};
  };
  const std::string key = machine_ + " who sums " + key_of(problem);
  return timed_choice(*cache_, key, is_capturing(gpu::current(device_)) ? Measure() : measure) != kApart;
}

}  // namespace lockstep::kernels::cuda
