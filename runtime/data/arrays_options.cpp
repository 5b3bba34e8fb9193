// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/arrays_options.h"

namespace lockstep::data {

FieldProblems problems_of(const ArraysOptions& options) {
  FieldChecks checks;
  if (options.features.empty()) checks.error("features", "is required: the path of a file");
  if (options.targets.empty()) checks.error("targets", "is required: the path of a file");
  checks.not_negative(static_cast<double>(options.classes), "classes");
  checks.not_negative(static_cast<double>(options.vocabulary), "vocabulary");
  if (options.target_kind == TargetKind::kNumbers && options.classes > 0) {
    checks.error("classes", "must be absent where targets are NUMBERS", {"target_kind"});
  }
  return checks.problems();
}

}  // namespace lockstep::data
