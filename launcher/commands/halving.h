// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/job/job.h"

namespace lockstep::launcher {

/// Successive halving: at rungs of steps the best of the runs go on, and the others stop for good.
struct Halving {
  std::string metric;             ///< "eval.accuracy"; empty: every run is trained to its end
  std::uint64_t first_steps = 1;  ///< those of the first rung
  std::uint64_t factor = 2;       ///< each rung has so many times the steps, and one of so many runs goes on
};

/// The steps of the rungs: first_steps, times factor from one to the next, below `steps`.
std::vector<std::uint64_t> rungs_of(const Halving& halving, std::uint64_t steps);

/// The rungs of a sweep that trains these jobs, below the steps of the shortest; none without a metric. Looks at the
/// jobs' data. Throws UsageError where a job does not evaluate the metric at each rung, where no rung lies before the
/// end, and where a rung has a single run left to choose from.
std::vector<std::uint64_t> require_rungs(const Halving& halving, std::span<const job::Job> jobs);

/// The number that a run counts by at a rung. Its evaluation there; of a run that ended before, or went past without
/// one, its last evaluation before; NaN, which never goes on, where it has none or its numbers went wrong. Nothing
/// where the run has yet to come there. Depends on the run's record alone.
std::optional<double> value_at(const std::filesystem::path& run, const std::string& metric, std::uint64_t rung);

/// The runs that go on, the best one first: ceil(n / factor) of n values, fewer where others are NaN. Of equal values
/// the first goes on.
std::vector<std::size_t> going_on(std::span<const double> values, const Halving& halving);

}  // namespace lockstep::launcher
