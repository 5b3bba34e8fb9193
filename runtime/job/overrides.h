// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "runtime/job/diagnostic.h"

namespace lockstep::job {

class Job;

/// Applies one `path=value`: "train.steps=10", "model.convnet.block[1].channels=64", "model.mlp.hidden=[1, 2]",
/// "schedule={ constant {} }". A text needs no quotes. A member of a oneof replaces the one that was set; a repeated
/// field is replaced as a whole; the bare word `unset` clears a field that is no text. Errors go to `diagnostics`,
/// positions to `locations`.
void apply_override(Job& job, const std::string& assignment, Locations& locations, Diagnostics& diagnostics);

}  // namespace lockstep::job
