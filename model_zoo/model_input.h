// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/tensor/shape.h"

namespace lockstep::model_zoo {

/// What a model is built to fit.
struct ModelInput {
  Shape sample_shape = {};   ///< of one sample, channels last: [8, 8, 1]
  std::int64_t outputs = 0;  ///< classes, or the size of a regression's target
};

}  // namespace lockstep::model_zoo
