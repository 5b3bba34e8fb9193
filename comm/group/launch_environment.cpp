// SPDX-License-Identifier: Apache-2.0
#include "comm/group/launch_environment.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

#include "comm/group/launcher_variables.h"
#include "comm/group/slurm_step.h"
#include "runtime/base/cores.h"
#include "runtime/base/error.h"

namespace lockstep::comm {

namespace {

/// One of them alone that promises no other rank says little: other programs use such names too.
constexpr std::array kTorchrun{"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};

void require_below(const char* name, int value, const char* limit, int most) {
  if (value < most) return;
  throw UsageError(fmt::format("environment variable {} is {}, and {} is {}", name, value, limit, most),
                   "Ranks are counted from 0.");
}

LaunchEnvironment torchrun_environment() {
  const LaunchEnvironment found{LaunchEnvironment::Launcher::kTorchrun, integer_in("RANK"), integer_in("WORLD_SIZE"),
                                integer_in("LOCAL_RANK"), integer_in("LOCAL_WORLD_SIZE")};
  require_below("RANK", found.rank, "WORLD_SIZE", found.size);
  require_below("LOCAL_RANK", found.local_rank, "LOCAL_WORLD_SIZE", found.local_size);
  return found;
}

LaunchEnvironment slurm_environment() {
  const LaunchEnvironment found{LaunchEnvironment::Launcher::kSlurm, integer_in("SLURM_PROCID", 0), slurm_step_size(),
                                integer_in("SLURM_LOCALID", 0), slurm_local_size()};
  // The components of a heterogeneous job count their own tasks alone.
  require_below("SLURM_PROCID", found.rank, "SLURM_STEP_NUM_TASKS", found.size);
  return found;
}

/// Throws UsageError where Slurm's variables promise other tasks and do not say which one this is. In a batch script
/// and in salloc's shell they describe the allocation, of which this process is the only one.
void refuse_half_of_slurm() {
  const int tasks = integer_in("SLURM_NTASKS", 1);
  const int task = integer_in("SLURM_PROCID", 0);
  if (tasks <= 1 || (is_set("SLURM_JOB_ID") && task == 0)) return;
  throw UsageError("environment variable SLURM_NTASKS is " + std::to_string(tasks) +
                       (task > 0 ? " and SLURM_PROCID is " + std::to_string(task) + ", but SLURM_STEP_ID is"
                                 : ", but SLURM_JOB_ID and SLURM_STEP_ID are") +
                       " not set: each task would train alone",
                   "Start the ranks with srun and hand all of Slurm's variables on to them, into containers too; unset "
                   "SLURM_NTASKS for a lone process.");
}

/// Cores that a process may run on; 0 where it cannot be seen.
int cores_of(pid_t process) {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(process, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
}

/// Whether mpirun has bound this rank to cores. Open MPI 5 leaves no word of it, but the rank has fewer cores than the
/// process that started it.
bool is_bound(LaunchEnvironment::Launcher launcher) {
  if (std::getenv("OMPI_MCA_orte_bound_at_launch") != nullptr) return true;
  return launcher == LaunchEnvironment::Launcher::kMpi && cores_of(getpid()) < cores_of(getppid());
}

}  // namespace

LaunchEnvironment launch_environment() {
  using Launcher = LaunchEnvironment::Launcher;
  if (is_set("OMPI_COMM_WORLD_RANK")) {
    return {Launcher::kMpi, integer_in("OMPI_COMM_WORLD_RANK", 0), integer_in("OMPI_COMM_WORLD_SIZE", 1),
            integer_in("OMPI_COMM_WORLD_LOCAL_RANK", 0), integer_in("OMPI_COMM_WORLD_LOCAL_SIZE", 1)};
  }
  // Before Slurm: torchrun may itself have been started by srun, and it is the nearer one.
  if (std::ranges::count_if(kTorchrun, is_set) > 1) return torchrun_environment();
  // The only task of a step, such as a shell, is a lone process, which may itself start ranks.
  if (is_set("SLURM_STEP_ID") && slurm_step_size() > 1) return slurm_environment();
  if (integer_in("WORLD_SIZE", 1) > 1 || integer_in("RANK", 0) > 0) return torchrun_environment();
  refuse_half_of_slurm();
  return {};
}

int own_cores(const LaunchEnvironment& environment) {
  // A task that Slurm binds to cores sees those alone. One that it does not bind sees all cores of the host.
  if (environment.launcher == LaunchEnvironment::Launcher::kSlurm && is_set("SLURM_CPUS_PER_TASK")) {
    return std::min(usable_cores(), integer_in("SLURM_CPUS_PER_TASK"));
  }
  return is_bound(environment.launcher) ? usable_cores() : usable_cores() / environment.local_size;
}

}  // namespace lockstep::comm
