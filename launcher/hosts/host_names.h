// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace lockstep::launcher {

/// The hosts of "a:4,b:4", each once, in their order.
std::vector<std::string> host_names(const std::string& hosts);

/// Whether the name is that of this machine.
bool is_this_host(const std::string& name);

}  // namespace lockstep::launcher
