// SPDX-License-Identifier: Apache-2.0
#include "model_zoo/vit_options.h"

#include "model_zoo/transformer_checks.h"

namespace lockstep::model_zoo {

FieldProblems problems_of(const VitOptions& options) {
  FieldChecks checks;
  checks.at_least_one(static_cast<double>(options.patch), "patch");
  check_transformer(checks, options);
  checks.fraction(options.dropout, "dropout");
  checks.fraction(options.attention_dropout, "attention_dropout");
  return checks.problems();
}

}  // namespace lockstep::model_zoo
