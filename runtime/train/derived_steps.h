// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/job/job.h"

namespace lockstep::data {
class Dataset;
}

namespace lockstep::train {

/// The job with the steps that its train.epochs are: epochs * steps_per_epoch, rounded up. All that comes behind (the
/// schedule, the loop, progress, checkpoints, the run's job.pbtxt) knows steps alone. Another job, and one of which
/// steps_per_epoch is not known (0), stays as it is. Throws FieldError for more steps than 32 bits count.
job::Job with_steps(job::Job job, std::int64_t steps_per_epoch);
/// The same with the steps of an epoch of `data`, which the job trains on.
job::Job with_steps(job::Job job, const data::Dataset& data);

}  // namespace lockstep::train
