// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/step/step_clock.h"
#include "runtime/tensor/dtype.h"

namespace lockstep::train {

/// When a rank's training step asks for collectives. Times are the rank's own, in ms from the step's begin: a clock
/// that stands while the rank waits in a collective.
struct StepSchedule {
  std::vector<double> bucket_ready_ms;  ///< in the order in which buckets leave
  std::vector<double> norm_forward_ms;  ///< where batch norms gather their statistics, if they are synchronised
  std::vector<double> norm_backward_ms;
  double reduction_ms = 0;  ///< where the rank begins to wait for its buckets: the last one leaves with backward's end
  double step_ms = 0;

  std::vector<std::int64_t> bucket_elements;
  DType reduced_dtype = DType::kFloat32;  ///< of the buckets while they are reduced
  int lanes = 1;                          ///< buckets that are reduced at the same time
  std::int64_t norm_numbers = 0;          ///< of a batch norm's statistics, on average; 0: none is synchronised
  std::int64_t norm_group = 0;            ///< ranks that share statistics; 0: all
};

/// The times of a step from everything that its StepClock told of it.
StepSchedule step_schedule_of(const std::vector<step::ClockedEvent>& events);

/// Each time is the median of the steps', multiplied by `factor`; of at least one step. What not every step has is left
/// out.
StepSchedule median_of(const std::vector<StepSchedule>& steps, double factor);

/// A step of a number of samples that was not measured: each time lies on the line through those of two steps that
/// were, since a step has a part that every sample adds to and one that none does. What not both have is left out.
struct MeasuredBatch {
  double samples = 0;  ///< of a rank
  StepSchedule step;
};
StepSchedule step_of(double samples, const MeasuredBatch& one, const MeasuredBatch& other);

}  // namespace lockstep::train
