// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

namespace lockstep::kernels::cpu {

/// The most threads that an operation of the calling thread runs on: OpenMP's, which OMP_NUM_THREADS sets.
int threads();

/// Has OpenMP start its threads for the calling thread now. Throws std::system_error where the system starts no more;
/// OpenMP itself would end the process later.
void start_threads();

/// Calls `run` on each of those threads at once. `run` must not throw.
void on_all_threads(const std::function<void()>& run);

/// While it lives, threads() of the calling thread is no more than so many multiply-adds keep busy: threads that wait
/// for each other more than they compute make a small operation slower, and on a busy machine far slower.
class [[nodiscard]] ThreadsFor {
 public:
  [[nodiscard]] explicit ThreadsFor(std::int64_t multiply_adds);
  ~ThreadsFor();
  ThreadsFor(const ThreadsFor&) = delete;
  ThreadsFor& operator=(const ThreadsFor&) = delete;

 private:
  int before_;
};

}  // namespace lockstep::kernels::cpu
