// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

// main() of GoogleTest programs that run as several ranks: rank 0 reports the tests, every rank its failures.

namespace lockstep {

/// What a rank other than 0 reports.
class RankFailures : public testing::EmptyTestEventListener {
 public:
  explicit RankFailures(int rank) : rank_(rank) {}

  // GoogleTest reports a result under its mutex, so that it cannot be asked for the current test then.
  void OnTestStart(const testing::TestInfo& test) override {
    test_ = std::string(test.test_suite_name()) + "." + test.name();
  }
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::printf("[rank %d] %s: %s:%d: %s\n", rank_, test_.c_str(),
                result.file_name() == nullptr ? "" : result.file_name(), result.line_number(), result.message());
    std::fflush(stdout);
  }

 private:
  int rank_;
  std::string test_;
};

/// What torchrun says, if it is there; -1 if not.
inline int rank_without_mpi() {
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK") == nullptr ? std::getenv("RANK") : nullptr;
  return rank == nullptr ? -1 : std::atoi(rank);
}

inline int run_tests(int rank) {
  testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
  if (rank != 0) {
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new RankFailures(rank));
  }
  return RUN_ALL_TESTS();
}

}  // namespace lockstep
