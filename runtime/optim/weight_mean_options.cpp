// SPDX-License-Identifier: Apache-2.0
#include "runtime/optim/weight_mean_options.h"

#include "runtime/base/option_checks.h"

namespace lockstep::optim {

FieldProblems problems_of(const WeightMeanOptions& options) { return problems_in_fields(options); }

}  // namespace lockstep::optim
