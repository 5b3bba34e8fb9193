// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace lockstep::comm {

// The step of Slurm that this process is a task of, as the variables of srun describe it.

/// Tasks of the step. A shell within a step of its own, as salloc and srun --pty open one, still sees the allocation's
/// SLURM_NTASKS.
int slurm_step_size();
/// Tasks of the step on this node; 1 where Slurm does not say.
int slurm_local_size();
/// Whether srun --mpi=pmix has given its tasks the means to find each other. Without, Open MPI ends the process in
/// MPI_Init.
bool slurm_starts_mpi();
/// The first one of a list of hosts in Slurm's short form: "n07" of "n[07-10,12],m02". Throws UsageError where it is of
/// another form.
std::string first_host_of(std::string_view hosts);

}  // namespace lockstep::comm
