// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "amp/grad_scaler/types.h"
#include "comm/group/communicator.h"
#include "runtime/tensor/device_value.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::amp {

/// The explicit MAX over ranks that makes a step applied or skipped by all alike; appended to the device's current
/// stream. `reduced` flags (float32 [parameters]) are those of the reduced gradients, `local` those of this rank's own
/// gradients before the reduction (nn::Arena::local_flags()); undefined where nobody looked, as on a
/// lone rank, whose own are the reduced ones. `state` is compared on the way: where ranks come with different ones, the
/// verdict's rank is Verdict::kRanksDiffer. A collective. A ballot is made and counted by vote() and count_ballot() of
/// runtime/kernels/functors/decisions.h; a step that is skipped is one for which each optimizer's kernel returns at
/// once (StepScalars::found_inf).
DeviceValue<Verdict> agree(const Tensor& reduced, const Tensor& local, comm::Communicator& communicator,
                           const RankState& state = {});

}  // namespace lockstep::amp
