// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step_profile.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "runtime/train/record/stragglers.h"

namespace lockstep::train {

namespace {

/// Above so many bytes a call, an operation is compared with a copy through memory. Two cores' second-level caches hold
/// less.
constexpr double kCachedBytes = 2 << 20;

double ms_of(std::chrono::nanoseconds time) { return std::chrono::duration<double, std::milli>(time).count(); }

struct PassSum {
  double calls = 0, ms = 0;
  ops::OperationWork work;
  std::string implementation;
};

ProfiledPass profiled(const std::string& name, DType dtype, bool is_operation, const PassSum& sum,
                      const MachineFloors& floors, double steps) {
  ProfiledPass pass{.name = name,
                    .dtype = dtype,
                    .is_operation = is_operation,
                    .calls = sum.calls / steps,
                    .ms = sum.ms / steps,
                    .implementation = sum.implementation};
  if (sum.ms <= 0 || !is_operation) return pass;
  pass.gflops = 1e-6 * sum.work.operations / sum.ms;
  pass.gb_per_s = 1e-6 * sum.work.bytes / sum.ms;
  const bool multiplies = sum.work.operations > 0;
  const double floor = multiplies ? floors.gflops(dtype) : floors.gb_per_s(sum.work.bytes / sum.calls);
  if (floor > 0) pass.of_floor = (multiplies ? pass.gflops : pass.gb_per_s) / floor;
  return pass;
}

}  // namespace

Spread spread_of(std::vector<double> values) {
  std::ranges::sort(values);
  const auto at = [&](double share) {
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
  };
  double sum = 0;
  for (const double value : values) sum += value;
  return {.mean = sum / static_cast<double>(values.size()), .p10 = at(0.1), .p50 = at(0.5), .p90 = at(0.9)};
}

double MachineFloors::gflops(DType dtype) const {
  if (dtype == DType::kBFloat16) return bfloat16_gflops;
  return dtype == DType::kFloat16 ? float16_gflops : float32_gflops;
}

double MachineFloors::gb_per_s(double bytes) const { return bytes > kCachedBytes ? memory_gb_per_s : cache_gb_per_s; }

std::optional<int> StepProfile::straggler() const {
  // Ranks whose waits are not known take equally long steps.
  if (ranks.size() < 2 || !ranks.front().waited_ms) return std::nullopt;
  const auto slowest = std::ranges::max_element(ranks, {}, &RankProfile::own_ms);
  std::vector<double> others;
  for (auto rank = ranks.begin(); rank != ranks.end(); ++rank) {
    if (rank != slowest) others.push_back(rank->own_ms());
  }
  const double median = spread_of(others).p50;
  if (!Stragglers::is_slow(1e-3 * slowest->own_ms(), 1e-3 * median)) return std::nullopt;
  return static_cast<int>(slowest - ranks.begin());
}

void fill_passes(StepProfile& profile, const std::deque<step::OperationTimes>& operations,
                 const std::function<std::string(const nn::Module*)>& layer_of) {
  std::map<std::tuple<std::string, DType, bool>, PassSum> passes;
  std::map<std::string, ProfiledLayer> layers;
  const auto steps = static_cast<double>(profile.steps);
  const auto add = [&](const std::string& name, const step::OperationTimes& times,
                       const step::OperationTimes::Pass& pass) {
    if (pass.calls == 0 && pass.time.count() == 0) return;
    PassSum& sum = passes[{name, times.dtype, times.is_operation}];
    sum.calls += static_cast<double>(pass.calls);
    sum.ms += ms_of(pass.time);
    sum.work += pass.work;
    if (pass.implementation != nullptr) sum.implementation = pass.implementation;
  };
  for (const step::OperationTimes& times : operations) {
    const std::string name(times.name);
    add(times.again ? name + " again" : name, times, times.forward);
    add(name + " backward", times, times.backward);
    if (!times.is_operation) continue;
    ProfiledLayer& layer = layers[layer_of(times.layer)];
    (times.again ? layer.backward_ms : layer.forward_ms) += ms_of(times.forward.time) / steps;
    layer.backward_ms += ms_of(times.backward.time) / steps;
  }
  for (const auto& [key, sum] : passes) {
    profile.passes.push_back(
        profiled(std::get<0>(key), std::get<1>(key), std::get<2>(key), sum, profile.floors, steps));
  }
  for (auto& [path, layer] : layers) {
    layer.path = path;
    profile.layers.push_back(layer);
  }
  std::ranges::stable_sort(profile.passes, std::greater(), &ProfiledPass::ms);
  std::ranges::stable_sort(profile.layers, std::greater(),
                           [](const ProfiledLayer& layer) { return layer.forward_ms + layer.backward_ms; });
}

}  // namespace lockstep::train
