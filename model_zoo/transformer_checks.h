// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/base/field_checks.h"

namespace lockstep::model_zoo {

/// Checks that the heads of a transformer share its width evenly.
template <class Options>
void check_heads(FieldChecks& checks, const Options& options) {
  if (options.heads < 1 || options.width < 1) return;
  checks.check(options.width % options.heads == 0, "heads", "a divisor of width", static_cast<double>(options.heads),
               {"width"});
}

}  // namespace lockstep::model_zoo
