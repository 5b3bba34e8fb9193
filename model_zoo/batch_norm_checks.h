// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/base/field_checks.h"

namespace lockstep::model_zoo {

/// Of the batch norms of a model: options with batch_norm_momentum and batch_norm_epsilon.
template <class Options>
void check_batch_norm(FieldChecks& checks, const Options& options) {
  checks.check(options.batch_norm_momentum >= 0 && options.batch_norm_momentum <= 1, "batch_norm_momentum", "in [0, 1]",
               options.batch_norm_momentum);
  checks.positive(options.batch_norm_epsilon, "batch_norm_epsilon");
}

}  // namespace lockstep::model_zoo
