// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/decisions.h"

namespace lockstep::amp {

// What lies on the device, as its kernels read and write it: the scale, what it follows, and what a rank has found.
using kernels::LossScaleOptions;
using kernels::LossScaleState;
using kernels::RankState;
using kernels::StepReport;
/// The agreement of all ranks, which is reached before anything changes. found_inf is 1 or 0; slot counts in the
/// arena's order, the order of backward.
using Verdict = kernels::StepVerdict;

}  // namespace lockstep::amp
