// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/kernels/decisions.h"

namespace lockstep::step {

/// The outcome of a step, for the host. A step writes it on its device.
struct StepOutcome {
  kernels::StepVerdict verdict;
  kernels::LossScaleState scale;    ///< after the step
  kernels::ScheduleState schedule;  ///< after the step
  float loss = 0.0f;                ///< mean over the step's samples on all ranks
  float stop = 0.0f;                ///< how many ranks asked to stop
  float skipped_samples = 0.0f;     ///< of the step's batches on all ranks: Batch::skipped_samples
  float grad_norm = 0.0f;           ///< of the unscaled gradients, where clipping by norm measures it

  bool skipped() const { return verdict.found_inf != 0.0f; }
};
/// From `loss` on: one collective adds them up over ranks.
inline constexpr std::int64_t kSums = 3;
static_assert(offsetof(StepOutcome, stop) == offsetof(StepOutcome, loss) + sizeof(float));
static_assert(offsetof(StepOutcome, skipped_samples) == offsetof(StepOutcome, stop) + sizeof(float));

}  // namespace lockstep::step
