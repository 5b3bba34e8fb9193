// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/group/world.h"
#include "runtime/optim/lr_range_test.h"
#include "runtime/tensor/device.h"

namespace lockstep::job {
class Job;
}

namespace lockstep::train {

/// Trains the job from the weights that a run of it begins with, on its training data, while the learning rate rises;
/// its schedule and its faults are left out. Writes nothing. The result is the same on every rank, and to rounding for
/// every number of ranks. A step that the loss scale skips is taken again with the next batch; where the scaler gives
/// up, the losses are no longer finite. Throws what training throws. A collective.
optim::LrRangeTest find_lr(comm::World& world, const job::Job& job, const optim::LrRangeTestOptions& options,
                           Device device);

}  // namespace lockstep::train
