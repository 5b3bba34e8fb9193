// SPDX-License-Identifier: Apache-2.0
#include "comm/group/world.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "comm/group/host_communicator.h"
#include "comm/group/join.h"
#include "comm/group/launch_board.h"
#include "comm/group/launcher_variables.h"
#include "comm/group/nccl_communicator.h"
#include "comm/group/network_choice.h"
#include "comm/group/slurm_step.h"
#include "comm/group/transport_choice.h"
#include "runtime/base/error.h"
#include "runtime/base/host_name.h"
#include "runtime/tensor/gpu.h"

namespace lockstep::comm {

namespace {

constexpr std::string_view kChooseNetwork =
    " Open MPI uses every network that two hosts have, also one that leads nowhere: --interface NAME|NET, or "
    "LOCKSTEP_INTERFACE, names the one to use, and lockstep doctor --hosts tries them.";

/// Throws UsageError for tasks of srun --mpi=pmi2, which speaks another language than Open MPI.
void refuse_pmi2() {
  if (slurm_starts_mpi() || (!is_set("PMI_RANK") && !is_set("PMI_FD"))) return;
  throw UsageError(
      "srun was told --mpi=pmi2 (PMI_RANK or PMI_FD is set, PMIX_RANK is not), which Open MPI does not speak",
      "Start the ranks with srun --mpi=pmix, or with --mpi=none: they join over TCP then.");
}

/// The ranks as MPI or TCP joins them, and those around this one.
struct JoinedRanks {
  Joined joined;
  std::shared_ptr<Neighbours> neighbours;
};

JoinedRanks join_ranks(const LaunchEnvironment& environment, const CommunicatorOptions& options, bool without_mpi,
                       LaunchBoard* board) {
  try {
    const Joined joined = without_mpi ? join_tcp(environment, options, board) : join_mpi(environment, options);
    return {joined, std::make_shared<Neighbours>(*joined.transport, options.shared_memory)};
  } catch (const PeerError& error) {
    // Ranks of one machine use no network. Over TCP the address is in the error.
    if (without_mpi || !environment.on_several_hosts()) throw;
    throw PeerError(fmt::format("{}, as rank {} (process {} on {}) sees it\n{}", error.what(), environment.rank,
                                getpid(), host_name(), networks_of_this_host()),
                    error.advice() + std::string(kChooseNetwork));
  }
}

}  // namespace

World World::from_environment(const CommunicatorOptions& options) {
  // First: whatever touches CUDA from here on must do so on this rank's own device.
  if (options.device != kCpu) gpu::use_device(options.device);
  const LaunchEnvironment environment = launch_environment();
  World world;
  world.local_rank_ = environment.local_rank;
  world.local_size_ = environment.local_size;
  if (environment.size == 1) {
    world.communicator_ = make_self_communicator(options.device);
    return world;
  }
  if (environment.launcher == LaunchEnvironment::Launcher::kSlurm) refuse_pmi2();
  apply_network_choice();
  std::unique_ptr<LaunchBoard> board = needs_board(environment) ? launch_board(options.timeout) : nullptr;
  const bool without_mpi = joins_over_tcp(environment, board.get());
  const auto [joined, neighbours] = join_ranks(environment, options, without_mpi, board.get());
  const int rank = joined.transport->rank();
  if (!without_mpi) {
    world.board_ = std::move(board);
    world.local_rank_ = neighbours->seating().machine_rank(rank);
    world.local_size_ = neighbours->seating().machine_size(rank);
  }
  world.transport_ = joined.transport->description();
  world.mpi_start_time_ = joined.mpi_start_time;
  world.communicator_ = make_host_communicator(joined.transport, neighbours);
  world.membership_ = joined.membership;
  if (options.device != kCpu) {
    world.communicator_ = make_nccl_communicator(world.communicator_, options.device, options);
  }
  return world;
}

World::World(World&&) noexcept = default;
World& World::operator=(World&&) noexcept = default;

World::~World() {
  // An error is on its way out of the run: the others need not wait for this rank.
  if (membership_ && std::uncaught_exceptions() > 0) membership_->fail();
}

void World::abort(int exit_code) {
  std::fflush(nullptr);
  if (membership_) membership_->abort(exit_code);
  std::_Exit(exit_code);
}

}  // namespace lockstep::comm
