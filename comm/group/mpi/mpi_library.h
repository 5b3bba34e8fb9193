// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <chrono>
#include <mutex>

namespace lockstep::comm {

/// Held around every MPI call of the process (MPI_THREAD_SERIALIZED). Nothing waits for a peer under it, except calls
/// that set something up, which every rank has announced to the others before.
std::timed_mutex& mpi_mutex();

/// Throws EnvironmentError that names the call and MPI's reason unless `code` is MPI_SUCCESS.
void check_mpi(int code, const char* call);

/// MPI's start and end. Where the program around us has started MPI already, it also ends it.
class MpiLibrary {
 public:
  MpiLibrary();
  /// MPI_Finalize, which waits for every rank; a rank that has lost its group must not call it.
  void finalize();
  /// How long MPI_Init took; 0 where MPI was running already.
  std::chrono::duration<double, std::milli> start_time() const { return start_time_; }

 private:
  std::chrono::duration<double, std::milli> start_time_{0};
  bool ours_ = false;
};

}  // namespace lockstep::comm
