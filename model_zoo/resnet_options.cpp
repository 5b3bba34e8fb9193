// SPDX-License-Identifier: Apache-2.0
#include "model_zoo/resnet_options.h"

#include <algorithm>
#include <array>

#include "runtime/base/option_checks.h"

namespace lockstep::model_zoo {

FieldProblems problems_of(const ResnetOptions& options) {
  constexpr std::array<std::int64_t, 5> kDepths{18, 34, 50, 101, 152};
  FieldChecks checks;
  const bool known = std::ranges::find(kDepths, options.depth) != kDepths.end();
  checks.check(known, "depth", "one of 18, 34, 50, 101, 152", static_cast<double>(options.depth));
  check_fields(options, checks);
  return checks.problems();
}

}  // namespace lockstep::model_zoo
