// SPDX-License-Identifier: Apache-2.0
// Three ranks with GPUs of which rank 1 misbehaves. Every rank prints one line with what became of it:
//   nccl_failure_ranks SCENARIO
#include <signal.h>

#include <cstdio>
#include <string>
#include <thread>

#include "comm/group/launch_environment.h"
#include "comm/group/world.h"
#include "runtime/tensor/error.h"
#include "runtime/tensor/gpu.h"

namespace {

using namespace lockstep;

constexpr std::chrono::milliseconds kTimeout{4000};

void run(const std::string& scenario, comm::World& world, Device device) {
  const Stream stream = Stream::current(device);
  const auto all_reduce = [&] {
    const Tensor tensor = Tensor::zeros({100000}, DType::kFloat32, device);
    world.communicator()->all_reduce(tensor, comm::ReduceOp::kSum, 1.0f, stream);
    stream.synchronize();
  };
  all_reduce();
  if (world.rank() == 1 && scenario == "killed") raise(SIGKILL);
  if (world.rank() == 1 && scenario == "late") std::this_thread::sleep_for(kTimeout * 3 / 4);
  if (world.rank() == 1 && scenario == "absent") {
    std::this_thread::sleep_for(kTimeout * 3 / 2);
    return;
  }
  all_reduce();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::string outcome = "finished";
  const int rank = comm::launch_environment().rank;
  if (gpu::device_count() == 0) {
    std::printf("rank %d ended with no GPU: skipped\n", rank);
    return 0;
  }
  try {
    const Device device{DeviceType::kCuda, comm::launch_environment().local_rank % gpu::device_count()};
    comm::World world = comm::World::from_environment({.timeout = kTimeout, .device = device});
    run(argv[1], world, device);
  } catch (const Error& error) {
    outcome = std::string("code ") + std::to_string(static_cast<int>(error.code())) + ": " + error.what();
  } catch (const std::exception& error) {
    outcome = error.what();
  }
  std::printf("rank %d ended with %s\n", rank, outcome.c_str());
  std::fflush(stdout);
  return 0;
}
