// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "runtime/nn/module.h"

namespace lockstep::data {
struct Description;
}
namespace lockstep::job {
class Job;
}

namespace lockstep::comm {
class Communicator;
}

namespace lockstep::train {

class JobStep;
class Network;

/// Writes the weights that the job's init_from names into its model, which may have an arena. Without `match` and
/// `except` all must be there and nothing else; with them only the chosen tensors are taken, and those must be there.
/// Returns what a person should know: how many were taken, which keep their initial values, which of the file are not
/// used, which prefix of a wrapper's was left out of the names. Throws FieldError before anything is written, with a
/// table of what is missing or misshaped and the patterns that would leave it out, or for a pattern that chooses
/// nothing; StorageError.
std::vector<std::string> load_initial_weights(const job::Job& job, nn::Module& model);

/// The same on rank 0 for a job that has an init_from, and its weights on all ranks. A collective.
void take_initial_weights(const job::Job& job, Network& network, JobStep& step, comm::Communicator& communicator);

/// What has to stand in the job's init_from beside its path, so that what fits its model for such data is taken:
/// `except: "^classifier"`; empty where all fits. Reads the weights. Throws as load_initial_weights() does where
/// nothing fits.
std::string choice_that_fits(const job::Job& job, const data::Description& data);

}  // namespace lockstep::train
