// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/arena.h"
#include "runtime/kernels/decisions.h"

namespace lockstep::optim {

// What an optimizer's kernels take as it is: the rule of an update, its place in the arena, and the numbers of a step.
using kernels::AdagradRule;
using kernels::AdamRule;
using kernels::ArenaSegment;
using kernels::ArenaSlice;
using kernels::ElementRule;
using kernels::LambRule;
using kernels::LayerRate;
using kernels::LayerRateRule;
using kernels::LionRule;
using kernels::MeanRule;
using kernels::NormLimit;
using kernels::NovogradRule;
using kernels::RmspropRule;
using kernels::ScheduleState;
using kernels::SgdRule;
using kernels::StepScalars;
using kernels::StepVerdict;

}  // namespace lockstep::optim
