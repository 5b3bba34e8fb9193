// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "comm/group/world.h"
#include "runtime/tensor/device.h"
#include "runtime/train/step_profile.h"

namespace lockstep::job {
class Job;
}

namespace lockstep::train {

/// Trains the job's steps from its first one on, with its data, its ranks and its faults, and takes the time of `steps`
/// of them behind a few to warm up; 0: as many as take some seconds. Between each two of these lies one without a
/// clock. One more is watched for its memory, and one of each of smaller_jobs(). Writes nothing. Measures the machine's
/// floors before. Passes and layers are this rank's; the ranks' times are the same everywhere. Throws what training
/// throws. A collective.
StepProfile bench_steps(comm::World& world, const job::Job& job, std::int64_t steps, Device device);

/// Trains and times steps as bench_steps() does. Returns a rank's samples and this rank's schedule, and measures
/// nothing else. A collective.
MeasuredBatch bench_batch(comm::World& world, const job::Job& job, std::int64_t steps, Device device);

}  // namespace lockstep::train
