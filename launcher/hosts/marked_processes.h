// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace lockstep::launcher {

/// Kills the processes of this host that have the mark in their command line. Throws UsageError for a mark that is too
/// short to be of one launcher alone.
void kill_marked(const std::string& mark);

/// The same on other hosts, over ssh, within seconds: a daemon of mpirun that cannot connect to it goes on for minutes.
void kill_marked_on(const std::vector<std::string>& hosts, const std::string& mark);

}  // namespace lockstep::launcher
