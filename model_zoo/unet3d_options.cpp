// SPDX-License-Identifier: Apache-2.0
#include "model_zoo/unet3d_options.h"

#include "runtime/base/option_checks.h"

namespace lockstep::model_zoo {

FieldProblems problems_of(const Unet3dOptions& options) {
  FieldChecks checks;
  check_fields(options, checks);
  if (options.norm == Unet3dNorm::kGroup && options.channels >= 1 && options.groups >= 1) {
    checks.check(options.channels % options.groups == 0, "groups", "a divisor of channels",
                 static_cast<double>(options.groups), {"channels"});
  }
  return checks.problems();
}

}  // namespace lockstep::model_zoo
