// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace lockstep::job {

/// Where a job's data come from, as the comment at its head says: the lines from "# Data: " on, up to an empty one or
/// one of a command ("#   lockstep ..."), joined. Empty where it says nothing.
std::string data_note(std::string_view text);

}  // namespace lockstep::job
