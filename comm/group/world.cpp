// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "comm/group/mpi_communicator.h"
#include "comm/group/nccl_communicator.h"
#include "runtime/tensor/error.h"
#include "runtime/tensor/gpu.h"

namespace lockstep::comm {

namespace {

/// How long a rank that ends the job waits for a thread of its own that is inside MPI.
constexpr auto kAbortPatience = std::chrono::seconds(1);

/// Whether srun has given its tasks the means to find each other. Without, Open MPI ends the process in MPI_Init.
bool slurm_starts_mpi() {
  return std::getenv("PMIX_RANK") != nullptr || std::getenv("PMI_RANK") != nullptr || std::getenv("PMI_FD") != nullptr;
}

MpiRuntime* mpi(const std::shared_ptr<void>& runtime) { return static_cast<MpiRuntime*>(runtime.get()); }

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
  if (environment.launcher == LaunchEnvironment::Launcher::kTorchrun) {
    throw EnvironmentError("torchrun's environment promises " + std::to_string(environment.size) +
                               " ranks, but the ranks find each other through MPI, which torchrun does not start",
                           "Start them with mpirun -n " + std::to_string(environment.size) +
                               " lockstep train ..., or with lockstep train --nproc " +
                               std::to_string(environment.size) + ".");
  }
  if (environment.launcher == LaunchEnvironment::Launcher::kSlurm && !slurm_starts_mpi()) {
    throw EnvironmentError("srun's environment promises " + std::to_string(environment.size) +
                               " ranks, but srun was not told to start MPI, so each would run alone",
                           "Start them with srun --mpi=pmix, or with mpirun inside the allocation.");
  }
  auto runtime = std::make_shared<MpiRuntime>(environment, options);
  world.local_rank_ = runtime->topology().machine_rank;
  world.local_size_ = runtime->topology().machine_size();
  world.mpi_start_time_ = runtime->mpi_start_time();
  world.communicator_ = make_mpi_communicator(std::make_shared<MpiChannel>(runtime));
  if (options.device != kCpu) {
    world.communicator_ = make_nccl_communicator(world.communicator_, options.device, options);
  }
  world.runtime_ = std::move(runtime);
  return world;
}

World::World(World&&) noexcept = default;
World& World::operator=(World&&) noexcept = default;

World::~World() {
  // An error is on its way out of the run: the others need not wait for this rank.
  if (runtime_ && std::uncaught_exceptions() > 0) mpi(runtime_)->peers().fail();
}

void World::abort(int exit_code) {
  std::fflush(nullptr);
  if (runtime_) {
    mpi(runtime_)->peers().fail();
    std::unique_lock lock(mpi_mutex(), kAbortPatience);
    MPI_Abort(MPI_COMM_WORLD, exit_code);
  }
  std::_Exit(exit_code);
}

}  // namespace lockstep::comm
