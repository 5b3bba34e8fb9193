// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/base/interfaces.h"

namespace lockstep::comm {

/// The variable that names the network between ranks: an interface ("eth0") or a network ("10.0.0.0/24").
inline constexpr const char* kInterfaceVariable = "LOCKSTEP_INTERFACE";

/// This host's interfaces that LOCKSTEP_INTERFACE means; empty where it is unset. Throws UsageError, which lists the
/// interfaces that there are, where the host has none of that name or in that network.
std::vector<Interface> chosen_interfaces();

/// The address of the chosen interfaces by which other hosts reach this rank; empty where none is chosen.
std::string chosen_address();

/// The addresses by which other hosts may reach this one, the most promising first: that of the chosen interface alone,
/// or those of all that have a link, fast ones before slow ones, networks inside the host last.
std::vector<std::string> addresses_of_this_host();
/// Chooses and sorts these interfaces in that way. `speed_of` returns an interface's speed in Mbit/s, 0 or less where
/// the system does not report one.
std::vector<std::string> addresses_of(std::vector<Interface> ways,
                                      const std::function<int(const Interface&)>& speed_of);

/// Has Open MPI and NCCL, which read their own variables when they start, use the chosen interfaces. NCCL knows no
/// networks, and interfaces may be called differently on each host, so that each rank names its own.
void apply_network_choice();

/// The networks of this host and how to choose one, behind an error of ranks that did not find each other.
std::string networks_of_this_host();

}  // namespace lockstep::comm
