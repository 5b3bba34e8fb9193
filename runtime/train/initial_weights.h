// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "runtime/nn/module.h"

namespace lockstep::job {
class Job;
}

namespace lockstep::train {

/// Writes the weights that the job's init_from names into its model, which may have an arena. Without `match` and
/// `except` all must be there and nothing else; with them only the chosen tensors are taken, and those must be there.
/// Returns what a person should know: how many were taken, which keep their initial values, which of the file are not
/// used. Throws UsageError that lists what is missing or misshaped before anything is written, StorageError, and
/// FieldError for a pattern that chooses nothing.
std::vector<std::string> load_initial_weights(const job::Job& job, nn::Module& model);

}  // namespace lockstep::train
