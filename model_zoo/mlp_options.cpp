// SPDX-License-Identifier: Apache-2.0
#include "model_zoo/mlp_options.h"

#include <fmt/format.h>

#include "runtime/base/option_checks.h"

namespace lockstep::model_zoo {

FieldProblems problems_of(const MlpOptions& options) { return problems_in_fields(options); }

}  // namespace lockstep::model_zoo
