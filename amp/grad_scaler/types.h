// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/decisions.h"

namespace lockstep::amp {

// Values that lie on a device. A kernel reads and writes them: the loss scale, its options, and the findings of a rank.
using kernels::LossScaleOptions;
using kernels::LossScaleState;
using kernels::RankState;
using kernels::StepReport;
/// The verdict on a step. All ranks agree on it before anything changes.
using Verdict = kernels::StepVerdict;

}  // namespace lockstep::amp
