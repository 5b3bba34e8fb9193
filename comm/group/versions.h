// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace lockstep::comm {

// Versions of the libraries that the process runs with; empty where the build has none.

/// "Open MPI 4.1.4". MPI need not be started.
std::string mpi_version();
/// "2.28.9"
std::string nccl_version();

}  // namespace lockstep::comm
