// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/process.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>
#include <thread>

#include "tests/support/processes.h"

namespace lockstep {
namespace {

/// A child that waits for a signal.
pid_t start_child() {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  while (true) pause();
}

/// The signal that has ended the child; 0 where none has.
int signal_that_ended(pid_t child) {
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TEST(Signals, ReachAChild) {
  const pid_t child = start_child();
  signal_child(child, SIGTERM);
  EXPECT_EQ(signal_that_ended(child), SIGTERM);
}

TEST(Signals, ReachNoGroupAndNoForeignProcess) {
  // This process would be among those that get it: 0 is its group, and -1 is everyone.
  const pid_t group = getpgrp();
  for (const pid_t pid : {0, -1, 1, -group, getpid(), getppid()}) {
    EXPECT_THROW(signal_child(pid, SIGKILL), std::invalid_argument) << pid;
  }
}

TEST(Signals, ReachNoChildThatHasBeenWaitedFor) {
  const pid_t child = start_child();
  signal_child(child, SIGKILL);
  signal_child(child, SIGKILL);  // it has ended, but keeps its number until
  EXPECT_EQ(signal_that_ended(child), SIGKILL);
  EXPECT_THROW(signal_child(child, SIGKILL), std::invalid_argument);
}

// Its file may have been opened by then, and say only when it is read that nobody is there.
TEST(ProcessFacts, AreNoneOfAProcessThatIsGone) {
  for (int i = 0; i < 300; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    std::thread parent([child] { waitpid(child, nullptr, 0); });
    const auto look_until_the_end = [child] {
      while (process_facts(child)) {
      }
    };
    EXPECT_NO_THROW(look_until_the_end());
    parent.join();
  }
}

TEST(ProcessWatch, SeesTheEndAndSignalsNobodyElse) {
  const pid_t child = start_child();
  const ProcessWatch watch(child);
  EXPECT_FALSE(watch.gone());
  watch.signal(SIGTERM);
  pollfd end{watch.descriptor(), POLLIN, 0};
  EXPECT_EQ(poll(&end, 1, -1), 1);
  EXPECT_TRUE(watch.gone());
  EXPECT_TRUE(process_exists(child)) << "it waits for its parent";
  EXPECT_EQ(signal_that_ended(child), SIGTERM);
  EXPECT_FALSE(process_exists(child));
  EXPECT_NO_THROW(watch.signal(SIGKILL));
}

TEST(ProcessWatch, OfWhatIsNoProcessDoesNothing) {
  for (const pid_t pid : {0, -1, -getpgrp()}) {
    const ProcessWatch watch(pid);
    EXPECT_EQ(watch.descriptor(), -1) << pid;
    EXPECT_FALSE(watch.gone());
    EXPECT_NO_THROW(watch.signal(SIGKILL));
    EXPECT_FALSE(process_exists(pid));
  }
  EXPECT_THROW(ProcessWatch(1).signal(SIGKILL), std::invalid_argument);
  EXPECT_TRUE(process_exists(1));
  EXPECT_TRUE(process_exists(getpid()));
}

// tests/support/processes.h

TEST(SignalsOfTests, ReachAChildOfAChild) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const pid_t grandchild = start_child();
    if (write(ends[1], &grandchild, sizeof grandchild) != sizeof grandchild) _exit(1);
    int status = 0;
    waitpid(grandchild, &status, 0);
    raise(WTERMSIG(status));
  }
  pid_t grandchild = 0;
  ASSERT_EQ(read(ends[0], &grandchild, sizeof grandchild), static_cast<ssize_t>(sizeof grandchild));
  EXPECT_THROW(signal_child(grandchild, SIGTERM), std::invalid_argument);
  support::signal_descendant(grandchild, SIGTERM);
  EXPECT_EQ(signal_that_ended(child), SIGTERM);
  close(ends[0]);
  close(ends[1]);
}

TEST(SignalsOfTests, ReachNobodyElse) {
  for (const pid_t pid : {0, -1, 1, -getpgrp(), getpid(), getppid()}) {
    EXPECT_THROW(support::signal_descendant(pid, SIGKILL), std::invalid_argument) << pid;
    EXPECT_THROW(support::signal_rank(0, pid, SIGKILL), std::invalid_argument) << pid;
  }
  const pid_t child = start_child();
  EXPECT_THROW(support::signal_rank(0, child, SIGKILL), std::invalid_argument) << "not beside this process";
  signal_child(child, SIGTERM);
  EXPECT_EQ(signal_that_ended(child), SIGTERM);
}

TEST(SignalsOfTests, ReachARankOnlyByItsOwnNumber) {
  // A launcher, and this process's child beside the rank.
  const pid_t launcher = fork();
  if (launcher == 0) {
    const pid_t rank = fork();
    if (rank == 0) execlp("env", "env", "RANK=1", "sleep", "600", nullptr);
    const pid_t beside = fork();
    if (beside == 0) {
      while (!support::has_variable(rank, "RANK=1")) usleep(1000);
      try {
        support::signal_rank(2, rank, SIGKILL);
        _exit(1);
      } catch (const std::invalid_argument&) {
        support::signal_rank(1, rank, SIGTERM);
        _exit(0);
      }
    }
    int status = 0;
    waitpid(beside, &status, 0);
    if (status != 0) _exit(1);
    waitpid(rank, &status, 0);
    _exit(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM ? 0 : 2);
  }
  int status = 0;
  waitpid(launcher, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace lockstep
