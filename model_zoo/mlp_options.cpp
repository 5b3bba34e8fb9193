// SPDX-License-Identifier: Apache-2.0
#include "model_zoo/mlp_options.h"

#include <fmt/format.h>

#include "model_zoo/batch_norm_checks.h"

namespace lockstep::model_zoo {

FieldProblems problems_of(const MlpOptions& options) {
  FieldChecks checks;
  for (std::size_t i = 0; i < options.hidden.size(); ++i) {
    checks.at_least_one(static_cast<double>(options.hidden[i]), fmt::format("hidden[{}]", i));
  }
  checks.fraction(options.dropout, "dropout");
  if (options.outputs) checks.at_least_one(static_cast<double>(*options.outputs), "outputs");
  check_batch_norm(checks, options);
  return checks.problems();
}

}  // namespace lockstep::model_zoo
