// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/job/diagnostic.h"

namespace lockstep::job {

class Job;

/// Checks what a resolved job means: required fields, ranges, contradictions, regular expressions, files of data.
/// `written` is the job before defaults, for showing paths as the user wrote them. `diagnostics` holds what reading has
/// found; a field or message already named there is not complained about again.
void validate(const Job& resolved, const Job& written, const Locations& locations, Diagnostics& diagnostics);

}  // namespace lockstep::job
