// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/plan_cache/timed_choice.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include "runtime/kernels/plan_cache/fastest.h"

namespace lockstep::kernels {

std::optional<std::string> timed_choice(const PlanCache& cache, const std::string& key, const Measure& measure) {
  if (auto kept = cache.find(key)) return kept;
  if (!measure) return {};
  const std::vector<TimedCandidate> candidates = measure();
  std::vector<std::optional<float>> times;
  for (const TimedCandidate& each : candidates) times.push_back(each.milliseconds);
  const std::optional<std::size_t> best = fastest(times);
  if (!best) return {};
  const std::string& name = candidates[*best].name;
  const std::optional<std::string> agreed = cache.keep(key, name);
  if (!agreed) return {};
  const std::string first = times.front() ? fmt::format("takes {:.1f} us", 1000 * *times.front()) : "does not run";
  spdlog::info("{}: candidate {} of {}, {}, takes {:.1f} us, the library's first choice {}{}", key, *best + 1,
               candidates.size(), name, 1000 * *times[*best], first,
               *agreed == name ? "" : "; another process was first to choose " + *agreed);
  return agreed;
}

}  // namespace lockstep::kernels
