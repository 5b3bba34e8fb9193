// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "runtime/base/process.h"
#include "runtime/train/record/status_board.h"
#include "tests/launcher/program.h"

namespace lockstep::launcher {

/// A rank that comes to `phase` and stays there, until it is killed. It has no heartbeat of its own.
class StayingRank {
 public:
  StayingRank(const Folder& folder, const train::StatusBoard& board, int rank, train::RankPhase phase) {
    setenv("LOCKSTEP_STATUS_BOARD", (folder / "status").c_str(), 1);
    pid_ = fork();
    if (pid_ == 0) {
      train::StatusBoard::from_environment().set(rank, phase, 7);
      for (;;) pause();
    }
    while (board.get(rank).pid == 0) usleep(1000);
  }
  ~StayingRank() {
    signal_child(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_;
};

}  // namespace lockstep::launcher
