// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep::comm {

/// The place of this process among the ranks, from its environment, before MPI is started: rank 0 of 1 for a lone
/// process, such as a shell in Slurm's allocation.
struct LaunchEnvironment {
  enum class Launcher { kNone, kMpi, kSlurm, kTorchrun } launcher = Launcher::kNone;
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;

  bool on_several_hosts() const { return local_size < size; }
};

/// Throws UsageError for variables of several ranks that do not say which one this is: each would train alone.
LaunchEnvironment launch_environment();

/// The cores of this rank, 0 where there are fewer than ranks. Ranks that a foreign mpirun or srun has started unbound
/// share those that they all see.
int own_cores(const LaunchEnvironment& environment);

}  // namespace lockstep::comm
