// SPDX-License-Identifier: Apache-2.0
#include "comm/group/world.h"

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "comm/group/host_communicator.h"
#include "comm/group/mpi/mpi_transport.h"
#include "comm/group/nccl_communicator.h"
#include "comm/group/tcp/tcp_transport.h"
#include "runtime/tensor/error.h"
#include "runtime/tensor/gpu.h"

namespace lockstep::comm {

namespace {

/// Whether srun has given its tasks the means to find each other. Without, Open MPI ends the process in MPI_Init.
bool slurm_starts_mpi() {
  return std::getenv("PMIX_RANK") != nullptr || std::getenv("PMI_RANK") != nullptr || std::getenv("PMI_FD") != nullptr;
}

template <class Channel, class Runtime>
std::shared_ptr<Communicator> first_channel(const std::shared_ptr<Runtime>& runtime) {
  return std::make_shared<ChannelCommunicator<Channel>>(std::make_shared<Channel>(runtime));
}

}  // namespace

World World::from_environment(const CommunicatorOptions& options) {
  const LaunchEnvironment environment = launch_environment();
  World world;
  world.local_rank_ = environment.local_rank;
  world.local_size_ = environment.local_size;
  if (options.device != kCpu) gpu::describe(options.device);  // throws where there is no such device
  if (environment.size == 1) {
    world.communicator_ = make_self_communicator(options.device);
    return world;
  }
  if (environment.launcher == LaunchEnvironment::Launcher::kSlurm && !slurm_starts_mpi()) {
    throw UsageError("environment variable SLURM_NTASKS promises " + std::to_string(environment.size) +
                         " ranks, but srun was not told to start MPI (PMIX_RANK, PMI_RANK and PMI_FD are not set): "
                         "each would train alone",
                     "Start them with srun --mpi=pmix, or with mpirun inside the allocation.");
  }
  if (environment.launcher == LaunchEnvironment::Launcher::kTorchrun) {
    const auto runtime = std::make_shared<TcpMembership>(environment, options);
    world.communicator_ = first_channel<TcpTransport>(runtime);
    world.membership_ = runtime;
  } else {
    const auto runtime = std::make_shared<MpiMembership>(environment, options);
    world.local_rank_ = runtime->topology().machine_rank;
    world.local_size_ = runtime->topology().machine_size();
    world.mpi_start_time_ = runtime->mpi_start_time();
    world.communicator_ = first_channel<MpiChannel>(runtime);
    world.membership_ = runtime;
  }
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
