// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cpu/threads.h"

#include <omp.h>

#include <algorithm>

namespace lockstep::kernels::cpu {

namespace {

/// What one thread computes in about 0.1 ms, several times what it costs to wake another and to wait for it.
constexpr std::int64_t kGrain = std::int64_t{1} << 22;

}  // namespace

int threads() { return omp_get_max_threads(); }

ThreadsFor::ThreadsFor(std::int64_t multiply_adds) : before_(threads()) {
  const std::int64_t useful = std::clamp<std::int64_t>(multiply_adds / kGrain, 1, before_);
  if (useful < before_) omp_set_num_threads(static_cast<int>(useful));
}

ThreadsFor::~ThreadsFor() {
  if (threads() != before_) omp_set_num_threads(before_);
}

}  // namespace lockstep::kernels::cpu
