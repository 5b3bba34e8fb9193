// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/base/field_checks.h"
#include "runtime/base/option_fields.h"

namespace lockstep::optim {

struct WeightMeanOptions {
  double decay = 0.999;  ///< of the mean that is kept at each step; in [0, 1)
  /// The decay is at most (1 + n) / (warmup + n) at the n-th applied step, counted from 1; 0: no warm-up.
  std::uint32_t warmup = 0;

  static constexpr auto fields() {
    return std::tuple(option("decay", &WeightMeanOptions::decay, kFraction),
                      option("warmup", &WeightMeanOptions::warmup));
  }
  bool operator==(const WeightMeanOptions&) const = default;
};

/// The problems for which WeightMean refuses the options, by field.
FieldProblems problems_of(const WeightMeanOptions& options);

}  // namespace lockstep::optim
