// SPDX-License-Identifier: Apache-2.0
// Three ranks of which rank 1, or the one that CULPRIT names, misbehaves. Every rank prints one line with what became
// of it:
//   failure_ranks SCENARIO shared|mpi|tcp
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "comm/group/operation.h"
#include "runtime/tensor/error.h"

namespace {

using namespace lockstep;

constexpr std::chrono::milliseconds kTimeout{2000};
const int culprit = std::getenv("CULPRIT") == nullptr ? 1 : std::atoi(std::getenv("CULPRIT"));
const Stream stream = Stream::calling_thread();

void all_reduce(comm::World& world, std::int64_t count, const Stream& on = stream) {
  world.communicator()->all_reduce(Tensor::zeros({count}, DType::kFloat32), comm::ReduceOp::kSum, 1.0f, on);
}

/// The culprit does one thing, the others reduce 100000 floats.
void either(comm::World& world, const std::function<void()>& misbehave) {
  if (world.rank() == culprit) misbehave();
  all_reduce(world, 100000);
}

/// Waits in a collective of a device, of which its watchdog looks after the ranks.
void wait_on_device(comm::World& world, std::int64_t count) {
  const comm::Operation operation{.kind = comm::OperationKind::kAllReduce, .dtype = DType::kFloat32, .count = count};
  const auto began = std::chrono::steady_clock::now();
  while (true) {
    const auto waited = std::chrono::steady_clock::now() - began;
    world.communicator()->inspect(operation, 7, std::chrono::duration_cast<std::chrono::milliseconds>(waited));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

const std::map<std::string, std::function<void(comm::World&)>> kScenarios{
    {"nothing", [](comm::World& world) { all_reduce(world, 100000); }},
    {"other_collective", [](comm::World& world) { either(world, [&] { world.communicator()->barrier(stream); }); }},
    {"other_count", [](comm::World& world) { either(world, [&] { all_reduce(world, 99); }); }},
    {"killed", [](comm::World& world) { either(world, [] { raise(SIGKILL); }); }},
    {"killed_async",
     [](comm::World& world) {
       if (world.rank() == culprit) raise(SIGKILL);
       const Stream worker = Stream::worker("comm");
       all_reduce(world, 100, worker);
       worker.synchronize();
     }},
    {"stopped", [](comm::World& world) { either(world, [] { raise(SIGSTOP); }); }},
    {"late", [](comm::World& world) { either(world, [] { std::this_thread::sleep_for(kTimeout * 3 / 4); }); }},
    {"failed", [](comm::World& world) { either(world, [] { throw std::runtime_error("out of coffee"); }); }},
    {"device_absent",
     [](comm::World& world) {
       if (world.rank() == culprit) std::this_thread::sleep_for(kTimeout * 3 / 2);
       if (world.rank() != culprit) wait_on_device(world, 5);
     }},
    {"device_killed",
     [](comm::World& world) {
       if (world.rank() == culprit) raise(SIGKILL);
       wait_on_device(world, 5);
     }},
    {"device_disagreeing", [](comm::World& world) { wait_on_device(world, world.rank() == culprit ? 99 : 5); }},
    {"aborted",
     [](comm::World& world) {
       if (world.rank() == culprit) {
         std::this_thread::sleep_for(kTimeout / 4);
         world.abort(5);
       }
       std::printf("rank %d waits\n", world.rank());
       std::fflush(stdout);
       std::this_thread::sleep_for(std::chrono::minutes(10));  // the watchdog is earlier
     }},
    {"left",
     [](comm::World& world) {
       if (world.rank() != culprit) all_reduce(world, 100000);
     }},
};

/// What the culprit cannot do itself once it is stopped.
void end_process(const Tensor& processes, int rank) { kill(static_cast<pid_t>(processes.item(rank)), SIGKILL); }

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string scenario = argv[1];
  std::string outcome = "finished";
  int rank = -1;
  const Tensor processes = Tensor::zeros({3}, DType::kInt64);
  try {
    comm::World world =
        comm::World::from_environment({.timeout = kTimeout, .shared_memory = std::string(argv[2]) == "shared"});
    rank = world.rank();
    world.communicator()->all_gather(Tensor::from<std::int64_t>({getpid()}, {1}), processes, stream);
    kScenarios.at(scenario)(world);
  } catch (const Error& error) {
    outcome = std::string("code ") + std::to_string(static_cast<int>(error.code())) + ": " + error.what();
  } catch (const std::exception& error) {
    outcome = error.what();
  }
  std::printf("rank %d ended with %s\n", rank, outcome.c_str());
  std::fflush(stdout);
  if (scenario == "stopped") {
    std::this_thread::sleep_for(kTimeout);  // the other survivor may be a little later, and must not see this one gone
    if (rank == (culprit == 0 ? 1 : 0)) end_process(processes, culprit);
  }
  return 0;
}
