// SPDX-License-Identifier: Apache-2.0
#include "comm/group/mpi/mpi_library.h"

#include <cstdlib>
#include <string>

#include "comm/group/versions.h"
#include "runtime/base/error.h"

namespace lockstep::comm {

std::timed_mutex& mpi_mutex() {
  static std::timed_mutex mutex;
  return mutex;
}

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char reason[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, reason, &length);
  throw EnvironmentError(std::string(call) + " failed: " + reason);
}

std::string mpi_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  if (MPI_Get_library_version(text, &length) != MPI_SUCCESS) return {};
  // "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, ..."
  std::string version(text);
  version = version.substr(0, version.find_first_of(",\n"));
  const std::size_t v = version.find(" v");
  return v == std::string::npos ? version : version.erase(v + 1, 1);
}

MpiLibrary::MpiLibrary() {
  const std::lock_guard lock(mpi_mutex());
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized != 0) {
    throw EnvironmentError("MPI has already ended in this process and cannot be started again",
                           "Keep one World for the whole run.");
  }
  int initialized = 0;
  MPI_Initialized(&initialized);
  int level = MPI_THREAD_SINGLE;
  if (initialized != 0) {
    MPI_Query_thread(&level);
  } else {
    // A rank that waits inside MPI lends its core to the rank it waits for, even where MPI counts enough cores.
    setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
    const auto begin = std::chrono::steady_clock::now();
    check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level), "MPI_Init_thread");
    start_time_ = std::chrono::steady_clock::now() - begin;
    ours_ = true;
  }
  if (level < MPI_THREAD_SERIALIZED) {
    throw EnvironmentError("this MPI was started without support for calls from several threads",
                           "Start it with MPI_Init_thread(..., MPI_THREAD_SERIALIZED, ...).");
  }
}

void MpiLibrary::finalize() {
  const std::lock_guard lock(mpi_mutex());
  if (ours_) MPI_Finalize();
}

}  // namespace lockstep::comm
