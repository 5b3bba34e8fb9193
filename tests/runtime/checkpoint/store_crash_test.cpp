// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>

#include <atomic>
#include <csignal>
#include <random>

#include "runtime/base/process.h"
#include "tests/runtime/checkpoint/checkpoint_support.h"

namespace lockstep::checkpoint {
namespace {

constexpr int kKilled = 9;

/// Dies before system call `at`; `torn` lets half of a write through first.
StorageHook die_at(std::uint64_t at, bool torn) {
  return [=](const StorageCall& call) -> StorageFault {
    const bool writes = call.operation == StorageOperation::kWrite;
    if (torn && writes && call.index == at) return {0, 5};
    if (call.index >= at + (torn ? 1 : 0)) ::_exit(kKilled);
    return {};
  };
}

void kill_at_every_call(const Scenario& scenario, bool torn) {
  SCOPED_TRACE(scenario.name);
  const ScratchDirectory scratch;
  scenario.prepare(scratch / "before");
  int outcome = kKilled;
  std::uint64_t at = 0;
  for (; outcome == kKilled; ++at) {
    SCOPED_TRACE("killed at call " + std::to_string(at));
    const std::string path = scratch / std::to_string(at);
    fs::copy(scratch / "before", path, fs::copy_options::recursive);
    outcome = in_child([&] {
      set_storage_hook(die_at(at, torn));
      scenario.act(path);
    });
    expect_recovers(path);
    fs::remove_all(path);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_EQ(outcome, 0);
  EXPECT_GE(at, 10u);
}

TEST(Crash, LosesNothingWhenKilledBeforeAnySystemCall) {
  for (const Scenario& scenario : scenarios()) kill_at_every_call(scenario, false);
}

TEST(Crash, LosesNothingWhenKilledInTheMiddleOfAnyWrite) {
  for (const Scenario& scenario : scenarios()) kill_at_every_call(scenario, true);
}

TEST(Crash, LosesNothingWhenKilledAtRandomInstants) {
  const ScratchDirectory scratch;
  const std::string path = scratch / "checkpoints";
  auto* committed = static_cast<std::atomic<std::uint64_t>*>(
      ::mmap(nullptr, sizeof(std::atomic<std::uint64_t>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  save(path, 1);
  *committed = 1;
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      for (std::uint64_t step = *committed + 1;; ++step) {
        save(path, step);
        *committed = step;
        store_in(path).prune(2);
      }
    }
    ::usleep(random() % 6000);
    signal_child(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    const std::optional<Checkpoint> latest = store_in(path).latest();
    ASSERT_TRUE(latest.has_value());
    ASSERT_GE(latest->state.step(), *committed);
    expect_content(*latest, latest->state.step());
    *committed = latest->state.step();
  }
  store_in(path).prune(1);
  EXPECT_EQ(names_in(path).size(), 1u);
  ::munmap(committed, sizeof *committed);
}

}  // namespace
}  // namespace lockstep::checkpoint
