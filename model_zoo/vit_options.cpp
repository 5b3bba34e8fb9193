// SPDX-License-Identifier: Apache-2.0
#include "model_zoo/vit_options.h"

#include "model_zoo/transformer_checks.h"
#include "runtime/base/option_checks.h"

namespace lockstep::model_zoo {

FieldProblems problems_of(const VitOptions& options) {
  FieldChecks checks;
  check_fields(options, checks);
  check_heads(checks, options);
  return checks.problems();
}

}  // namespace lockstep::model_zoo
