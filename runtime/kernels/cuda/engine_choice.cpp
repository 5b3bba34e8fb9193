// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/engine_choice.h"

#include <spdlog/spdlog.h>

#include <vector>

#include "runtime/base/error.h"
#include "runtime/kernels/cuda/plan_machine.h"
#include "runtime/kernels/cuda/timing.h"
#include "runtime/kernels/plan_cache/timed_choice.h"
#include "runtime/kernels/versions.h"
#include "runtime/tensor/cuda/stream.h"
#include "runtime/tensor/gpu_waits.h"

namespace lockstep::kernels::cuda {

namespace {

/// Past the first few, engines of the ranking are seldom faster, and some take a second to build.
constexpr std::size_t kCandidates = 8;

}  // namespace

EngineChoice::EngineChoice(Device device) : EngineChoice(device, plan_settings()) {}

EngineChoice::EngineChoice(Device device, const PlanSettings& settings)
    : device_(device),
      autotune_(settings.autotune),
      machine_(plan_machine("cudnn-" + cudnn_version(), device)),
      cache_(plan_cache_of(machine_, settings.folder)) {}

std::unique_ptr<CudnnPlan> EngineChoice::named(cudnnHandle_t handle, const CudnnProblem& problem,
                                               const std::string& key, const std::optional<std::string>& name) const {
  if (!name) return nullptr;
  std::unique_ptr<CudnnPlan> plan = CudnnPlan::named({handle}, problem, *name);
  if (!plan) spdlog::warn("ignoring {}: no engine {} computes it here", cache_.path_of(key), *name);
  return plan;
}

std::unique_ptr<CudnnPlan> EngineChoice::choose(cudnnHandle_t handle, const CudnnProblem& problem,
                                                const CudnnAddresses& addresses) const {
  if (autotune_) {
    if (auto plan = timed(handle, problem, addresses)) return plan;
  }
  const std::string key = machine_ + " ranked " + problem.key;
  if (auto plan = named(handle, problem, key, cache_.find(key))) return plan;
  auto plans = CudnnPlan::ranked({handle}, problem, 1);
  if (plans.empty()) return nullptr;
  if (!plans.front()->name().empty()) cache_.keep(key, plans.front()->name());
  return std::move(plans.front());
}

std::unique_ptr<CudnnPlan> EngineChoice::timed(cudnnHandle_t handle, const CudnnProblem& problem,
                                               const CudnnAddresses& addresses) const {
  const std::string key = machine_ + " timed " + problem.key;
  const auto measure = [&] {
    const Timer timer(device_);
    std::vector<TimedCandidate> timed;
    for (const auto& plan : CudnnPlan::ranked({handle}, problem, kCandidates)) {
      if (plan->name().empty()) continue;
      timed.push_back({plan->name(), {}});
      try {
        timed.back().milliseconds = timer.milliseconds_of([&] { plan->run(handle, addresses, device_); });
      } catch (const Error& error) {  // one that needs more memory than there is, for example
        gpu::rethrow_failure(device_);
        spdlog::debug("{} is no candidate: {}", plan->name(), error.what());
      }
    }
    return timed;
  };
  return named(handle, problem, key,
               timed_choice(cache_, key, is_capturing(gpu::current(device_)) ? Measure() : measure));
}

}  // namespace lockstep::kernels::cuda
