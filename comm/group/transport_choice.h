// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "comm/group/launch_board.h"
#include "comm/group/launch_environment.h"

namespace lockstep::comm {

/// The variable that names what carries data between hosts, "mpi" or "tcp". The bits are the same.
inline constexpr const char* kTransportVariable = "LOCKSTEP_TRANSPORT";

/// Whether ranks that mpirun or srun --mpi=pmix has started need its board: those of several hosts to agree on a
/// transport, and those that meet over TCP. Throws UsageError where LOCKSTEP_TRANSPORT is neither "mpi" nor "tcp".
bool needs_board(const LaunchEnvironment& environment);

/// Whether the ranks join over TCP: always where their launcher does not start MPI; with a board where rank 0 takes
/// transport_between_hosts() to be "tcp"; else never. With a board a collective. Throws UsageError where
/// LOCKSTEP_TRANSPORT says otherwise on this rank, or the launcher cannot do what it says.
bool joins_over_tcp(const LaunchEnvironment& environment, LaunchBoard* board);

/// "tcp" or "mpi": what LOCKSTEP_TRANSPORT says or, where it is not set, "mpi" on a host with an RDMA network, which
/// MPI uses.
std::string transport_between_hosts();

/// Whether this host has an RDMA network that this process may use: InfiniBand, RoCE, iWARP, Omni-Path or EFA with an
/// active port, or Slingshot. `root`: where /dev and /sys are.
bool has_rdma(const std::filesystem::path& root = "/");

}  // namespace lockstep::comm
