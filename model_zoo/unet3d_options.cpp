// SPDX-License-Identifier: Apache-2.0
#include "model_zoo/unet3d_options.h"

#include "model_zoo/batch_norm_checks.h"

namespace lockstep::model_zoo {

namespace {

/// Extents and channels are powers of two of it, which an int64 has to hold.
constexpr std::int64_t kMostLevels = 16;

}  // namespace

FieldProblems problems_of(const Unet3dOptions& options) {
  FieldChecks checks;
  checks.check(options.levels >= 1 && options.levels <= kMostLevels, "levels", "in [1, 16]",
               static_cast<double>(options.levels));
  const bool has_channels = checks.at_least_one(static_cast<double>(options.channels), "channels");
  checks.at_least_one(static_cast<double>(options.convolutions), "convolutions");
  const bool has_groups = checks.at_least_one(static_cast<double>(options.groups), "groups");
  if (options.norm == Unet3dNorm::kGroup && has_channels && has_groups) {
    checks.check(options.channels % options.groups == 0, "groups", "a divisor of channels",
                 static_cast<double>(options.groups), {"channels"});
  }
  check_batch_norm(checks, options);
  return checks.problems();
}

}  // namespace lockstep::model_zoo
