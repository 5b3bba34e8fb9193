// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/tensor/tensor.h"

namespace lockstep::bench {

// What ours is compared with; mpi_allreduce.cpp has it, and no_mpi_allreduce.cpp stands in for it in a build without.

/// Whether MPI has started this process.
bool has_mpi();
/// MPI_Allreduce of fp32, in place; nothing without MPI.
void mpi_allreduce(const Tensor& tensor);

}  // namespace lockstep::bench
