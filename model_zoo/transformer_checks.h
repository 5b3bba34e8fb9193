// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/base/field_checks.h"

namespace lockstep::model_zoo {

/// Of what the options of every transformer have.
template <class Options>
void check_transformer(FieldChecks& checks, const Options& options) {
  const auto at_least_one = [&checks](std::int64_t value, const char* field) {
    return checks.at_least_one(static_cast<double>(value), field);
  };
  at_least_one(options.layers, "layers");
  const bool both = at_least_one(options.heads, "heads") & at_least_one(options.width, "width");
  if (both) {
    checks.check(options.width % options.heads == 0, "heads", "a divisor of width", static_cast<double>(options.heads),
                 {"width"});
  }
  if (options.hidden) at_least_one(*options.hidden, "hidden");
  checks.positive(options.norm_epsilon, "norm_epsilon");
}

/// Of what the options of every model of texts have.
template <class Options>
void check_text_transformer(FieldChecks& checks, const Options& options) {
  check_transformer(checks, options);
  checks.at_least_one(static_cast<double>(options.context), "context");
  if (options.vocabulary) checks.at_least_one(static_cast<double>(*options.vocabulary), "vocabulary");
  checks.not_negative(options.initial_deviation, "initial_deviation");
}

}  // namespace lockstep::model_zoo
