// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/group/world.h"
#include "runtime/data/loader.h"

namespace lockstep::job {
class Job;
}

namespace lockstep::train {

/// How this rank loads a job's training data for `device`, from the start: with as many threads as it has cores of its
/// own where the job does not say. SkippedNames tells of what cannot be read.
data::LoaderOptions training_loader(const job::Job& job, const comm::World& world, Device device);

/// The options for a pass over the evaluation data: in their order, each sample once over all ranks.
data::LoaderOptions evaluation_loader(const job::Job& job, const comm::World& world, Device device);

}  // namespace lockstep::train
