// SPDX-License-Identifier: Apache-2.0
#include "amp/grad_scaler/grad_scaler_options.h"

#include <limits>

#include "runtime/base/option_lines.h"

namespace lockstep::amp {

FieldProblems problems_of(const GradScalerOptions& options) {
  FieldChecks checks;
  constexpr double kLargest = std::numeric_limits<float>::max();
  if (checks.positive(options.init, "init")) {
    checks.check(options.init <= kLargest, "init", "a float32 number", options.init);
  }
  if (checks.check(options.growth_factor > 1, "growth_factor", "> 1", options.growth_factor)) {
    checks.check(options.growth_factor <= 1e6, "growth_factor", "<= 1e6", options.growth_factor);
  }
  checks.check(options.backoff_factor > 0 && options.backoff_factor < 1, "backoff_factor", "> 0 and < 1",
               options.backoff_factor);
  if (checks.at_least_one(options.growth_interval, "growth_interval")) {
    // A device counts in 32 bits.
    checks.check(options.growth_interval <= std::numeric_limits<std::int32_t>::max(), "growth_interval",
                 "<= 2147483647", options.growth_interval);
  }
  const bool min_is_usable = checks.positive(options.min, "min");
  const bool max_is_usable = checks.positive(options.max, "max");
  if (!options.dynamic || !min_is_usable || !max_is_usable) return checks.problems();
  if (!checks.check(options.min <= options.max, "min", "<= max", options.min, {"max"})) return checks.problems();
  checks.check(!(options.init < options.min), "init", ">= min", options.init, {"min", "max"});
  checks.check(!(options.init > options.max), "init", "<= max", options.init, {"min", "max"});
  return checks.problems();
}

std::string describe(const GradScalerOptions& options) {
  return "enabled: " + text_of(options.enabled) + "\n" + lines_of(options);
}

}  // namespace lockstep::amp
