// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cpu/threads.h"

#include <omp.h>

#include <algorithm>
#include <latch>
#include <system_error>
#include <thread>
#include <vector>

namespace lockstep::kernels::cpu {

namespace {

/// The multiply-adds of one thread in about 0.1 ms, several times as long as it takes to wake another and wait for it.
constexpr std::int64_t kGrain = std::int64_t{1} << 22;

}  // namespace

int threads() { return omp_get_max_threads(); }

void start_threads() {
  {
    // A trial starts as many threads at once, with stacks of their own.
    std::latch end(1);
    std::vector<std::jthread> trial;
    try {
      for (int i = 1; i < threads(); ++i) trial.emplace_back([&end] { end.wait(); });
    } catch (const std::system_error&) {
      end.count_down();
      throw;
    }
    end.count_down();
  }
#pragma omp parallel
  {}
}

void on_all_threads(const std::function<void()>& run) {
#pragma omp parallel
  run();
}

ThreadsFor::ThreadsFor(std::int64_t multiply_adds) : before_(threads()) {
  const std::int64_t useful = std::clamp<std::int64_t>(multiply_adds / kGrain, 1, before_);
  if (useful < before_) omp_set_num_threads(static_cast<int>(useful));
}

ThreadsFor::~ThreadsFor() {
  if (threads() != before_) omp_set_num_threads(before_);
}

}  // namespace lockstep::kernels::cpu
