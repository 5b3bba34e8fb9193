// SPDX-License-Identifier: Apache-2.0
// All-reduce of fp32 between the ranks of this machine, ours in place in shared memory beside MPI_Allreduce, in turns:
//   mpirun -n 2 build/release/bin/allreduce_bench
// Prints a JSON line a size with the median times, the payload's bandwidth and the ratio.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "comm/group/world.h"

namespace {

using namespace lockstep;

constexpr int kRounds = 31;

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

template <class F>
double microseconds(F f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

void compare(comm::Communicator& communicator, std::int64_t bytes) {
  const Stream stream = Stream::calling_thread();
  const std::int64_t count = bytes / 4;
  const Tensor ours = Tensor::view(communicator.allocate(static_cast<std::size_t>(bytes)), 0, {count}, DType::kFloat32);
  const Tensor theirs = Tensor::zeros({count}, DType::kFloat32);
  // Small calls last less than the clock and the barrier can resolve.
  const int repeats = static_cast<int>(std::clamp<std::int64_t>((std::int64_t{4} << 20) / bytes, 1, 1000));

  std::vector<double> our_times, their_times;
  for (int round = -2; round < kRounds; ++round) {  // two rounds to warm up
    communicator.barrier(stream);
    const double our_time = microseconds([&] {
      for (int i = 0; i < repeats; ++i) communicator.all_reduce(ours, comm::ReduceOp::kAverage, 1.0f, stream);
    });
    communicator.barrier(stream);
    const double their_time = microseconds([&] {
      for (int i = 0; i < repeats; ++i) {
        MPI_Allreduce(MPI_IN_PLACE, theirs.data(), static_cast<int>(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      }
    });
    if (round < 0) continue;
    our_times.push_back(our_time / repeats);
    their_times.push_back(their_time / repeats);
  }
  if (communicator.rank() != 0) return;
  const double our_time = median(our_times);
  const double their_time = median(their_times);
  const auto gigabytes = static_cast<double>(bytes) * 1e-3;
  std::printf(
      "{\"bytes\": %lld, \"ranks\": %d, \"lockstep_us\": %.2f, \"mpi_us\": %.2f, \"lockstep_gb_per_s\": %.2f, "
      "\"mpi_gb_per_s\": %.2f, \"ratio\": %.2f}\n",
      static_cast<long long>(bytes), communicator.size(), our_time, their_time, gigabytes / our_time,
      gigabytes / their_time, their_time / our_time);
  std::fflush(stdout);
}

}  // namespace

int main() {
  setenv("OMPI_MCA_mpi_yield_when_idle", "0", 1);  // Open MPI as it comes, not as the library sets it
  const comm::World world = comm::World::from_environment();
  if (world.size() == 1) {
    std::fprintf(stderr, "allreduce_bench compares ranks: start it with mpirun -n 2\n");
    return 2;
  }
  for (const std::int64_t bytes : {64LL, 4LL << 10, 64LL << 10, 1LL << 20, 4LL << 20, 25LL << 20, 100LL << 20}) {
    compare(*world.communicator(), bytes);
  }
  return 0;
}
