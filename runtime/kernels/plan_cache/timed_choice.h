// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/kernels/plan_cache/plan_cache.h"

namespace lockstep::kernels {

struct TimedCandidate {
  std::string name;
  std::optional<float> milliseconds;  ///< nothing for one that does not run
};

/// Times the candidates, in the order of a library's ranking.
using Measure = std::function<std::vector<TimedCandidate>()>;

/// The candidate whose name the cache keeps for `key`: timing is chance, so a choice holds only once it is kept, where
/// the first one stays. Where none is kept yet, calls `measure` and keeps the fastest. Nothing where that cannot be
/// kept, or no candidate runs, or `measure` is empty and would be needed. What is kept need not be among those that
/// `measure` returns: another process may have chosen it.
std::optional<std::string> timed_choice(const PlanCache& cache, const std::string& key, const Measure& measure);

}  // namespace lockstep::kernels
