// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "runtime/job/job.h"

namespace lockstep::launcher {

/// Runs a forward pass and the loss of the job's model, in training mode, on the first two samples of its training
/// data, on the CPU, and tells which dtypes its operations run in, as `lockstep inspect --autocast --json` prints it:
/// {"kind": "autocast", "job", "opt_level", "dtype", "operations": [{"layer", "operation", "inputs": [dtype],
/// "results": [dtype], "decided_by", "casts": [{"parameter" or null, "from", "to", "how"}]}]}. The words are
/// amp::TracedOperation's. No device changes a dtype. Throws what training throws for the job's data or model.
nlohmann::ordered_json inspect_autocast(const job::Job& job);

/// The inspection as text for a person, a line an operation.
std::string autocast_text(const nlohmann::ordered_json& inspection);

}  // namespace lockstep::launcher
