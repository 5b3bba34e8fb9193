// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace lockstep {

/// This machine's name; "unknown" where the system does not say.
std::string host_name();

}  // namespace lockstep
