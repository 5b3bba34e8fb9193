// SPDX-License-Identifier: Apache-2.0
// Three ranks with GPUs of which rank 1 misbehaves. Every rank prints one line with what became of it:
//   nccl_failure_ranks SCENARIO
#include <signal.h>

#include <cstdio>
#include <string>
#include <thread>

#include "comm/group/device_waits.h"
#include "comm/group/launch_environment.h"
#include "comm/group/world.h"
#include "runtime/base/error.h"
#include "runtime/tensor/gpu.h"

namespace {

using namespace lockstep;

constexpr std::chrono::milliseconds kTimeout{4000};

/// A step of two channels that is captured and launched, which rank 1 leaves to the others. They wait beside a graph
/// that lives.
void run_captured(comm::World& world, Device device) {
  const Stream stream = Stream::current(device), side = Stream::create(device, "side");
  comm::Communicator& first = *world.communicator();
  const auto second = first.duplicate("second");
  const Tensor a = Tensor::zeros({100000}, DType::kFloat32, device);
  const Tensor b = Tensor::zeros({100000}, DType::kFloat32, device);
  const auto step = [&] {
    side.wait(stream.record());
    first.all_reduce(a, comm::ReduceOp::kSum, 1.0f, stream);
    second->all_reduce(b, comm::ReduceOp::kSum, 1.0f, side);
    stream.wait(side.record());
  };
  step();
  stream.synchronize();
  gpu::Graph graph(device);
  graph.capture(step);
  for (std::uint64_t number = 56; number <= 57; ++number) {
    if (world.rank() == 1 && number == 57) return std::this_thread::sleep_for(kTimeout * 3 / 2);
    comm::launch_watched(first, stream, number, [&] { graph.launch(); });
    stream.synchronize();
  }
}

void run(const std::string& scenario, comm::World& world, Device device) {
  const Stream stream = Stream::current(device);
  const auto all_reduce = [&] {
    const Tensor tensor = Tensor::zeros({100000}, DType::kFloat32, device);
    world.communicator()->all_reduce(tensor, comm::ReduceOp::kSum, 1.0f, stream);
    stream.synchronize();
  };
  if (scenario == "graph") return run_captured(world, device);
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
