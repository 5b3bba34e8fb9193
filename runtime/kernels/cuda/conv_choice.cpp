// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/conv_choice.h"

#include <spdlog/spdlog.h>

#include <vector>

#include "runtime/kernels/cuda/plan_machine.h"
#include "runtime/kernels/cuda/timing.h"
#include "runtime/kernels/plan_cache/timed_choice.h"
#include "runtime/kernels/versions.h"
#include "runtime/tensor/cuda/stream.h"
#include "runtime/tensor/error.h"

namespace lockstep::kernels::cuda {

namespace {

/// Past the first few, engines of the ranking are seldom faster, and some take a second to build.
constexpr std::size_t kCandidates = 8;

}  // namespace

ConvChoice::ConvChoice(Device device) : ConvChoice(device, plan_settings()) {}

ConvChoice::ConvChoice(Device device, const PlanSettings& settings)
    : device_(device),
      autotune_(settings.autotune),
      machine_(plan_machine("cudnn-" + cudnn_version(), device)),
      cache_(plan_cache_of(machine_, settings.folder)) {}

std::unique_ptr<ConvGraph> ConvChoice::named(cudnnHandle_t handle, const ConvProblem& problem, const std::string& key,
                                             const std::optional<std::string>& name) const {
  if (!name) return nullptr;
  std::unique_ptr<ConvGraph> plan = ConvGraph::named(handle, problem, *name);
  if (!plan) spdlog::warn("ignoring {}: no engine {} computes it here", cache_.path_of(key), *name);
  return plan;
}

std::unique_ptr<ConvGraph> ConvChoice::choose(cudnnHandle_t handle, const ConvProblem& problem,
                                              const ConvData& data) const {
  if (autotune_) {
    if (auto plan = timed(handle, problem, data)) return plan;
  }
  const std::string key = machine_ + " ranked " + key_of(problem);
  if (auto plan = named(handle, problem, key, cache_.find(key))) return plan;
  auto plans = ConvGraph::ranked(handle, problem, 1);
  if (plans.empty()) return nullptr;
  if (!plans.front()->name().empty()) cache_.keep(key, plans.front()->name());
  return std::move(plans.front());
}

std::unique_ptr<ConvGraph> ConvChoice::timed(cudnnHandle_t handle, const ConvProblem& problem,
                                             const ConvData& data) const {
  const std::string key = machine_ + " timed " + key_of(problem);
  const auto measure = [&] {
    const Timer timer(gpu::current(device_));
    std::vector<TimedCandidate> timed;
    for (const auto& plan : ConvGraph::ranked(handle, problem, kCandidates)) {
      if (plan->name().empty()) continue;
      timed.push_back({plan->name(), {}});
      try {
        timed.back().milliseconds = timer.milliseconds_of([&] { plan->run(handle, data, device_); });
      } catch (const Error& error) {  // one that needs more memory than there is, for example
        spdlog::debug("{} is no candidate: {}", plan->name(), error.what());
      }
    }
    return timed;
  };
  return named(handle, problem, key,
               timed_choice(cache_, key, is_capturing(gpu::current(device_)) ? Measure() : measure));
}

}  // namespace lockstep::kernels::cuda
