// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/mpi_allreduce.h"

#include <mpi.h>

namespace lockstep::bench {

bool has_mpi() {
  int initialized = 0;
  MPI_Initialized(&initialized);
  return initialized != 0;
}

void mpi_allreduce(const Tensor& tensor) {
  if (!has_mpi()) return;
  MPI_Allreduce(MPI_IN_PLACE, tensor.data(), static_cast<int>(tensor.numel()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

}  // namespace lockstep::bench
