// SPDX-License-Identifier: Apache-2.0
// For a build with MPI, under which all ranks exit alike; started without, each exits with its own code.
#include <mpi.h>

#include "tests/support/ranks_main.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (lockstep::rank_without_mpi() >= 0) return lockstep::run_tests(lockstep::rank_without_mpi());
  int thread_level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &thread_level);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int failed = lockstep::run_tests(rank);
  MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return failed;
}
