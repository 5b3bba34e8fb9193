// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/color_jitter.h"

namespace lockstep::data {

FieldProblems problems_of(const ColorJitterOptions& options) {
  FieldChecks checks;
  checks.not_negative(options.brightness, "brightness");
  checks.not_negative(options.contrast, "contrast");
  checks.not_negative(options.saturation, "saturation");
  checks.check(options.hue >= 0 && options.hue <= 0.5, "hue", ">= 0 and <= 0.5", options.hue);
  return checks.problems();
}

}  // namespace lockstep::data
