// SPDX-License-Identifier: Apache-2.0
// Three ranks of which rank 1, or the one that CULPRIT names, misbehaves, once the others are ready for it. Every rank
// prints one line with what became of it:
//   failure_ranks SCENARIO shared|mpi|tcp SECONDS
// SECONDS is the timeout of collectives.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "comm/group/device_waits.h"
#include "comm/group/launch_environment.h"
#include "comm/group/world.h"
#include "runtime/base/error.h"
#include "tests/support/mailbox.h"
#include "tests/support/processes.h"

namespace {

using namespace lockstep;

constexpr int kRanks = 3;
const int culprit = std::getenv("CULPRIT") == nullptr ? 1 : std::atoi(std::getenv("CULPRIT"));
std::chrono::milliseconds timeout;
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
    comm::inspect_wait(*world.communicator(), operation, 7,
                       std::chrono::duration_cast<std::chrono::milliseconds>(waited));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

/// From here on this process has no memfd, as on an old system or in a strict container.
void forbid_memfd() {
  sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program{sizeof filter / sizeof filter[0], filter};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) throw std::runtime_error("no seccomp");
}

/// Reduces in shared memory, or says how else.
void share(comm::World& world) {
  const std::string how = world.communicator()->description();
  if (!how.ends_with(", shared memory")) throw std::runtime_error(how);
  const Tensor tensor = Tensor::view(world.communicator()->allocate(400000), 0, {100000}, DType::kFloat32);
  for (float& value : tensor.mutable_as<float>()) value = 1;
  world.communicator()->all_reduce(tensor, comm::ReduceOp::kSum, 1.0f, stream);
  if (tensor.item(99999) != world.size()) throw std::runtime_error("the sum is wrong");
  const std::string prefix = "lockstep." + std::to_string(getpid()) + ".";
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    if (entry.path().filename().string().starts_with(prefix)) throw std::runtime_error("left " + entry.path().string());
  }
}

const std::map<std::string, std::function<void(comm::World&)>> kScenarios{
    {"nothing", [](comm::World& world) { all_reduce(world, 100000); }},
    {"no_memfd", share},
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
    {"late", [](comm::World& world) { either(world, [] { std::this_thread::sleep_for(timeout / 2); }); }},
    {"failed", [](comm::World& world) { either(world, [] { throw std::runtime_error("out of coffee"); }); }},
    {"device_absent",
     [](comm::World& world) {
       if (world.rank() == culprit) std::this_thread::sleep_for(timeout * 3 / 2);
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
       if (world.rank() == culprit) world.abort(5);
       std::this_thread::sleep_for(std::chrono::minutes(10));  // the watchdog is earlier
     }},
    {"left",
     [](comm::World& world) {
       if (world.rank() != culprit) all_reduce(world, 100000);
     }},
};

/// Returns once every rank has its world and the others know the culprit's process id, which is returned. Whatever then
/// becomes of the culprit, what this needs has been said; a collective would need rank 0's thread to answer.
pid_t meet(const support::Mailbox& mailbox, int rank) {
  if (rank != culprit) {
    std::printf("rank %d is ready\n", rank);
    std::fflush(stdout);
    mailbox.tell(culprit, getpid());
    return static_cast<pid_t>(mailbox.hear());
  }
  for (int other = 1; other < kRanks; ++other) mailbox.hear();
  for (int other = 0; other < kRanks; ++other) {
    if (other != culprit) mailbox.tell(other, getpid());
  }
  return getpid();
}

/// For one of the two that a stopped rank leaves: neither ends before the other has seen what there was to see, and
/// then one does what the culprit cannot do itself.
void end_stopped(const support::Mailbox& mailbox, int rank, pid_t stopped) {
  const int other = 3 - rank - culprit;
  mailbox.tell(other, getpid());
  mailbox.hear();
  if (rank < other) support::signal_rank(culprit, stopped, SIGKILL);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::string scenario = argv[1];
  timeout = std::chrono::seconds(std::atoi(argv[3]));
  const bool shared_memory = std::string(argv[2]) == "shared";
  const support::Mailbox mailbox(comm::launch_environment().rank);
  std::string outcome = "finished";
  int rank = -1;
  pid_t process_of_culprit = 0;
  try {
    if (scenario == "no_memfd") forbid_memfd();
    comm::World world = comm::World::from_environment({.timeout = timeout, .shared_memory = shared_memory});
    rank = world.rank();
    if (scenario != "nothing") process_of_culprit = meet(mailbox, rank);
    kScenarios.at(scenario)(world);
  } catch (const Error& error) {
    outcome = std::string("code ") + std::to_string(static_cast<int>(error.code())) + ": " + error.what();
  } catch (const std::exception& error) {
    outcome = error.what();
  }
  std::printf("rank %d ended with %s\n", rank, outcome.c_str());
  std::fflush(stdout);
  if (scenario == "stopped") end_stopped(mailbox, rank, process_of_culprit);
  return 0;
}
