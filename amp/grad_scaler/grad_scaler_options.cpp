// SPDX-License-Identifier: Apache-2.0
#include "amp/grad_scaler/grad_scaler_options.h"

#include <limits>

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
  std::string lines;
  const auto line = [&lines](const char* field, const std::string& value) {
    lines += std::string(field) + ": " + value + "\n";
  };
  const auto text = [](bool value) { return std::string(value ? "true" : "false"); };
  line("enabled", text(options.enabled));
  line("dynamic", text(options.dynamic));
  line("init", shortest_text(options.init));
  line("growth_factor", shortest_text(options.growth_factor));
  line("backoff_factor", shortest_text(options.backoff_factor));
  line("growth_interval", std::to_string(options.growth_interval));
  line("min", shortest_text(options.min));
  line("max", shortest_text(options.max));
  line("max_consecutive_skips", std::to_string(options.max_consecutive_skips));
  return lines;
}

}  // namespace lockstep::amp
