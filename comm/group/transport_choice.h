// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "comm/group/launch_board.h"
#include "comm/group/launch_environment.h"

namespace lockstep::comm {

/// The variable that names what carries data between hosts, "mpi" or "tcp". The bits are the same.
inline constexpr const char* kTransportVariable = "LOCKSTEP_TRANSPORT";

/// Whether ranks need the board of their launcher, which starts MPI: those of several hosts to agree on a transport,
/// and those that meet over TCP. Throws UsageError where LOCKSTEP_TRANSPORT is neither "mpi" nor "tcp".
bool needs_board(const LaunchEnvironment& environment);

/// Whether the ranks join over TCP: because the launcher starts no MPI, or LOCKSTEP_TRANSPORT says so, or rank 0's host
/// has no RDMA network, which MPI would use. With a board a collective, in which rank 0 decides for all. Throws
/// UsageError where LOCKSTEP_TRANSPORT says otherwise on this rank, or the launcher cannot do what it says.
bool joins_over_tcp(const LaunchEnvironment& environment, LaunchBoard* board);

/// Whether this host has an RDMA network: InfiniBand, RoCE, iWARP, Omni-Path, EFA, or Slingshot. `classes`: where the
/// system lists its devices by class.
bool has_rdma(const std::filesystem::path& classes = "/sys/class");

}  // namespace lockstep::comm
