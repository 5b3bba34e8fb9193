// SPDX-License-Identifier: Apache-2.0
// main() of GoogleTest programs that run as several ranks: rank 0 reports the tests, every rank its failures. Under MPI
// all exit alike; started without, each exits with its own.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

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
int rank_without_mpi() {
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK") == nullptr ? std::getenv("RANK") : nullptr;
  return rank == nullptr ? -1 : std::atoi(rank);
}

int run_tests(int rank) {
  testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
  if (rank != 0) {
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new RankFailures(rank));
  }
  return RUN_ALL_TESTS();
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (rank_without_mpi() >= 0) return run_tests(rank_without_mpi());
  int thread_level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &thread_level);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int failed = run_tests(rank);
  MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return failed;
}
