// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/backend.h"

namespace lockstep::train {

/// What the host wants to know of a step. A step writes it on its device.
struct StepOutcome {
  kernels::StepVerdict verdict;
  kernels::LossScaleState scale;    ///< after the step
  kernels::ScheduleState schedule;  ///< after the step
  float loss = 0.0f;                ///< mean over the global batch
  float stop = 0.0f;                ///< how many ranks were told to stop
  float grad_norm = 0.0f;           ///< of the unscaled gradients, where clipping by norm measures it
};

}  // namespace lockstep::train
