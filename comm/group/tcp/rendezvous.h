// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "comm/group/communicator.h"
#include "comm/group/launch_environment.h"
#include "comm/group/tcp/greeting.h"
#include "comm/group/tcp/search.h"
#include "comm/group/tcp/socket.h"

namespace lockstep::comm {

/// Where ranks find rank 0.
///
/// Rank 0 of mpirun and of srun --mpi=pmix listens at any port. It tells the other ranks, on the launcher's board, its
/// port, the addresses of its host and the run's name. Where its environment has MASTER_ADDR, that is the first
/// address.
///
/// All other ranks read it in the environment: MASTER_ADDR names rank 0's machine. MASTER_PORT itself is torchrun's
/// own there when it says so (TORCHELASTIC_USE_AGENT_STORE=True); so rank 0 listens at the first free port of the
/// kPorts that begin with it, or behind it, and the others try them all: the greeting tells whether it is rank 0 of the
/// same run that they have found. Where the environment gives the run no name, it is one of the same job and number of
/// ranks. Tasks of a step of Slurm need neither of the two: rank 0 is on the first host of SLURM_STEP_NODELIST, the
/// numbers of job and step choose kPorts between 20000 and 24095 and are the run's name. LOCKSTEP_MASTER_PORT names one
/// port instead, for where a firewall has to know it; ranks then listen for each other at the first free one of the
/// kPorts behind it. Ranks that are all on one machine use its loopback interface, whatever MASTER_ADDR is called.
struct TcpRendezvous {
  static constexpr int kPorts = 16;

  std::vector<std::string> addresses;  ///< of rank 0's host, the best first; none for this machine
  std::vector<std::uint16_t> ports;
  std::string name;                            ///< the same on all ranks of the run
  RunKey key{};                                ///< of this run and no other: made of name and LOCKSTEP_SECRET
  std::vector<std::uint16_t> direct_ports{0};  ///< at which ranks listen for each other; 0: any
  bool named = false;                          ///< the environment tells this run from all others, whatever they do
  std::string own_address{};  ///< at which this rank takes connections: that of the chosen interface; empty: at all

  /// From the environment variables. Throws UsageError that names one that is missing or wrong.
  static TcpRendezvous from_environment(const LaunchEnvironment& environment);
  /// For rank 0: at its own host, in a run that has no name yet. Throws EnvironmentError where others cannot reach it.
  static TcpRendezvous on_this_host(const LaunchEnvironment& environment);
  /// For the others, from rank 0's word().
  static TcpRendezvous from_word(const LaunchEnvironment& environment, const std::string& word);

  /// The text that rank 0 gives to the other ranks: "41233 NAME 10.0.0.1 fd00::1". Rank 0 listens at `port`.
  std::string word(std::uint16_t port) const;
  /// "10.0.0.1, port 29500 to 29515"
  std::string str() const;

  /// For rank 0. Throws EnvironmentError where every port is taken.
  Socket listen() const;
  /// For a rank to which others connect directly. The same.
  Socket listen_to_ranks(int rank) const;
  /// For the others: a connection to the hub that has welcomed `hello`. Throws PeerError where it is not found within
  /// the timeout, EnvironmentError where one has refused this rank: at once where there is but one port.
  using Joined = HubSearch::Found;
  Joined join(const Hello& hello, std::chrono::milliseconds timeout) const;
};

}  // namespace lockstep::comm
