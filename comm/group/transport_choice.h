// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/group/launch_environment.h"

namespace lockstep::comm {

/// The variable that names what carries data between hosts, "mpi" or "tcp". The bits are the same.
inline constexpr const char* kTransportVariable = "LOCKSTEP_TRANSPORT";

/// Whether LOCKSTEP_TRANSPORT says "tcp". Throws UsageError where it says neither that nor "mpi".
bool chooses_tcp();

/// Whether the launcher's ranks join over TCP: because LOCKSTEP_TRANSPORT says so, or the launcher starts no MPI.
/// Throws UsageError where it starts none and LOCKSTEP_TRANSPORT says "mpi".
bool joins_over_tcp(LaunchEnvironment::Launcher launcher);

}  // namespace lockstep::comm
