// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/group/collective_costs.h"
#include "runtime/train/step_schedule.h"

namespace lockstep::train {

/// A training step on other ranks than those that were measured, in ms.
struct PredictedStep {
  double step_ms = 0;
  double exposed_ms = 0;  ///< of it in collectives, with nothing left to compute
  double taken_ms = 0;    ///< by which the computation lasts longer, as its cores reduce meanwhile
};

/// The step of `layout`, each of whose ranks computes what the schedule's rank does, as fast. Buckets leave as they
/// become ready, one after the other on each lane, and have the hosts' links one at a time; synchronised batch norms,
/// the verdict and the step's sums stop the rank; the optimizer begins when the last bucket has ended. Ranks are alike:
/// nothing is lost to slow ones.
PredictedStep predict_step(const StepSchedule& schedule, const comm::RankLayout& layout, const comm::RankLinks& links);

}  // namespace lockstep::train
