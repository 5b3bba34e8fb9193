// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/field_checks.h"
#include "runtime/base/option_fields.h"

namespace lockstep::amp {

/// How a GradScaler scales; the defaults are PyTorch's, for float16. With bfloat16 or float32, which need no scale:
/// {.dynamic = false, .init = 1}.
struct GradScalerOptions {
  /// False: losses and gradients are left alone, as with a scale of 1 that stays; bad gradients skip the step all the
  /// same. For a loop that runs with and without mixed precision.
  bool enabled = true;
  bool dynamic = true;                   ///< false: the scale stays `init`; bad gradients skip the step all the same
  double init = 65536;                   ///< > 0, a float32; where dynamic within [min, max]
  double growth_factor = 2;              ///< > 1, at most 1e6: the scale grows by it after growth_interval steps
  double backoff_factor = 0.5;           ///< between 0 and 1: the scale falls by it at an overflow
  std::uint32_t growth_interval = 2000;  ///< 1 to 2^31 - 1 applied steps in a row
  double min = 1;                        ///< > 0: the scale does not fall below it
  double max = 16777216;                 ///< > 0: the scale does not grow above it
  std::uint32_t max_consecutive_skips = 20;  ///< then update() throws NumericsError; 0: never

  static constexpr auto fields() {
    return std::tuple(option("dynamic", &GradScalerOptions::dynamic, Otherwise::kFollows),
                      option("init", &GradScalerOptions::init, kPositive, Otherwise::kFollows),
                      option("growth_factor", &GradScalerOptions::growth_factor),
                      option("backoff_factor", &GradScalerOptions::backoff_factor),
                      option("growth_interval", &GradScalerOptions::growth_interval),
                      option("min", &GradScalerOptions::min), option("max", &GradScalerOptions::max),
                      option("max_consecutive_skips", &GradScalerOptions::max_consecutive_skips));
  }
  bool operator==(const GradScalerOptions&) const = default;
};

/// The problems for which a GradScaler refuses the options; empty where they can be used.
FieldProblems problems_of(const GradScalerOptions& options);

/// A line a field, "init: 65536\n", by which ranks compare their options.
std::string describe(const GradScalerOptions& options);

}  // namespace lockstep::amp
