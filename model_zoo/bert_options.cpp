// SPDX-License-Identifier: Apache-2.0
#include "model_zoo/bert_options.h"

#include "model_zoo/transformer_checks.h"

namespace lockstep::model_zoo {

FieldProblems problems_of(const BertOptions& options) {
  FieldChecks checks;
  check_text_transformer(checks, options);
  checks.fraction(options.dropout, "dropout");
  if (options.pad_token) checks.not_negative(static_cast<double>(*options.pad_token), "pad_token");
  return checks.problems();
}

}  // namespace lockstep::model_zoo
