// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/tensor/input_spec.h"
#include "runtime/tensor/shape.h"

namespace lockstep::model_zoo {

/// The data that a model is built for.
struct ModelInput {
  Shape sample_shape = {};                  ///< of one sample, channels last: [8, 8, 1]; or [T] tokens
  std::int64_t outputs = 0;                 ///< classes, or the size of a regression's target
  std::int64_t vocabulary = 0;              ///< samples are tokens below it; 0: they are numbers
  Shape target_shape = {};                  ///< of one target; a scalar's where a sample has one label
  std::int64_t classes = 0;                 ///< targets are classes below it; 0: they are numbers
  std::vector<InputSpec> more_inputs = {};  ///< beside the first
};

}  // namespace lockstep::model_zoo
