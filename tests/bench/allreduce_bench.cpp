// SPDX-License-Identifier: Apache-2.0
// All-reduce of fp32 between the ranks of this machine, ours in place in shared memory and, where MPI has started them,
// beside it MPI_Allreduce, in turns:
//   mpirun -n 2 build/release/bin/allreduce_bench
//   tests/support/torchrun_ranks 2 build/release/bin/allreduce_bench
// Arguments: `--alone` leaves MPI_Allreduce out, `--rounds N` counts the rounds (31), numbers are the sizes in bytes.
// Prints a JSON line a size with the median times, the payload's bandwidth and the ratio.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "comm/group/world.h"
#include "tests/bench/mpi_allreduce.h"

namespace {

using namespace lockstep;

int rounds = 31;
bool beside_mpi = true;

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
  for (int round = -2; round < rounds; ++round) {  // two rounds to warm up
    communicator.barrier(stream);
    const double our_time = microseconds([&] {
      for (int i = 0; i < repeats; ++i) communicator.all_reduce(ours, comm::ReduceOp::kAverage, 1.0f, stream);
    });
    communicator.barrier(stream);
    const double their_time = microseconds([&] {
      for (int i = 0; i < repeats && beside_mpi; ++i) bench::mpi_allreduce(theirs);
    });
    if (round < 0) continue;
    our_times.push_back(our_time / repeats);
    their_times.push_back(their_time / repeats);
  }
  if (communicator.rank() != 0) return;
  const double our_time = median(our_times);
  const double their_time = median(their_times);
  const auto gigabytes = static_cast<double>(bytes) * 1e-3;
  std::printf("{\"bytes\": %lld, \"ranks\": %d, \"over\": \"%s\", \"lockstep_us\": %.2f, \"lockstep_gb_per_s\": %.2f",
              static_cast<long long>(bytes), communicator.size(), communicator.description().c_str(), our_time,
              gigabytes / our_time);
  if (beside_mpi) {
    std::printf(", \"mpi_us\": %.2f, \"mpi_gb_per_s\": %.2f, \"ratio\": %.2f", their_time, gigabytes / their_time,
                their_time / our_time);
  }
  std::printf("}\n");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::int64_t> sizes;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--alone") {
      beside_mpi = false;
    } else if (std::string(argv[i]) == "--rounds" && i + 1 < argc) {
      rounds = std::max(std::atoi(argv[++i]), 1);
    } else {
      sizes.push_back(std::atoll(argv[i]));
    }
  }
  if (sizes.empty()) sizes = {64LL, 4LL << 10, 64LL << 10, 1LL << 20, 4LL << 20, 25LL << 20, 100LL << 20};
  setenv("OMPI_MCA_mpi_yield_when_idle", "0", 1);  // Open MPI as it comes, not as the library sets it
  const comm::World world = comm::World::from_environment();
  if (world.size() == 1) {
    std::fprintf(stderr, "allreduce_bench compares ranks: start it with mpirun -n 2, or as torchrun does\n");
    return 2;
  }
  beside_mpi = beside_mpi && bench::has_mpi();
  for (const std::int64_t bytes : sizes) compare(*world.communicator(), bytes);
  return 0;
}
