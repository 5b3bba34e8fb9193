// SPDX-License-Identifier: Apache-2.0
// For a build without MPI: every rank exits with its own code.
#include <algorithm>

#include "tests/support/ranks_main.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  return lockstep::run_tests(std::max(lockstep::rank_without_mpi(), 0));
}
