// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launcher/supervisor/child_process.h"
#include "launcher/supervisor/host_watch.h"
#include "launcher/supervisor/message_queue.h"
#include "launcher/supervisor/mpirun_messages.h"
#include "launcher/supervisor/rank_output.h"
#include "launcher/supervisor/rank_silence.h"
#include "launcher/supervisor/rank_watch.h"
#include "launcher/supervisor/signal_inbox.h"
#include "runtime/base/error.h"
#include "runtime/train/record/status_board.h"
#include "runtime/train/train.h"

namespace lockstep::launcher {

/// How a job's ranks ended.
struct Outcome {
  ExitCode code = ExitCode::kDone;
  std::optional<Error> error;  ///< where no rank has said what happened
  std::uint64_t step = 0;      ///< that the ranks had come to
  std::string where;           ///< of an error: "rank 1, in step 57, backward"; may be empty
  std::string mpirun_said;     ///< mpirun's own words and those of ssh, where it could not start the ranks
  bool stop_requested = false;
  bool joined = true;              ///< any rank has joined the others, as far as this machine can know
  std::vector<std::string> hosts;  ///< other machines that ssh led to
};

/// The facts that the supervisor needs of the ranks.
struct Supervised {
  bool one_machine = true;        ///< every rank is on this machine
  bool saves_on_request = false;  ///< SIGUSR1 makes them save and exit
  train::TrainOutput output = {};
  /// How long a rank of this machine may be silent, and start-up stand still.
  std::chrono::milliseconds timeout{60'000};
  /// Called once, when all ranks have joined: they need no file any more to find each other.
  std::function<void()> joined = {};
  std::vector<std::string> hosts = {};  ///< the other machines that ranks are on
  bool ranks_here = true;               ///< some are on this one
};

/// Runs mpirun once. Prints what the ranks print, names a rank that is lost, silent or never starts and ends the
/// others, passes requests to stop on to the ranks, and leaves no process behind.
class Supervisor {
 public:
  Supervisor(const ChildCommand& command, const train::StatusBoard& board, const SignalInbox& inbox,
             Supervised supervised);

  Outcome run();

 private:
  using Clock = std::chrono::steady_clock;

  void wait();
  void pass_output();
  /// Passes on what is left; lines that were held back of a start that has failed are part of its outcome.
  void finish_messages(const std::string& last, bool start_failed);
  void tell_of_joining();
  /// Where mpirun starts no rank, what it says of the hosts is enough.
  void tell_of_unwatched_hosts();
  /// Waits until the ranks have ended; then what they held, such as the lock of the run directory, is free.
  void wait_for_ranks();
  void acknowledge_stop();
  void on_stop_request();
  void on_ranks_ended(const std::vector<int>& ranks);
  void look_for_silence();
  std::optional<Error> silence(std::chrono::milliseconds elapsed);
  /// Where no rank starts: mpirun waits without end for its daemons on other hosts to connect.
  std::optional<Error> not_started(std::chrono::milliseconds elapsed);
  /// That any rank of this machine has come to.
  std::uint64_t newest_step() const;
  /// "in step 57, backward"; of a rank of another machine, which has no board, the step of those of this one.
  std::string moment_of(int rank) const;
  /// Whether ranks that are done, or mpirun behind its last rank, take too long to end.
  bool end_hangs(std::chrono::milliseconds elapsed);
  /// The exit codes of the ranks, once all have ended; mpirun may never say.
  std::optional<int> code_of_ranks() const;
  /// The most telling of the exit codes that ranks have ended with so far; 0 where none has.
  int code_so_far() const;
  void take_down(std::chrono::milliseconds delay);
  bool mpirun_has_noticed() const;
  void escalate();
  Outcome outcome() const;
  /// The outcome where all ranks have ended, some of them not by themselves, and mpirun, which saw how, has hung.
  Outcome outcome_without_mpirun() const;
  /// The rank that was lost first.
  int culprit() const;
  Outcome lost_rank(int rank) const;
  /// The error of a rank that ended without reporting one.
  Error lost(int rank) const;
  /// The error of a rank that a signal ended before it was seen, where mpirun does not name it.
  Error lost_unseen(int signal) const;
  /// Whether mpirun's exit code names a signal: mpirun ends as the first rank that was killed did.
  bool mpirun_names_signal() const;
  /// The outcome where mpirun, or ssh, has told why no rank could be started.
  std::optional<Outcome> failed_start() const;
  /// mpirun's remarks, to be appended to our message; empty where it made none.
  std::string quoted_remarks() const;
  std::string advice() const;

  const SignalInbox& inbox_;
  Supervised supervised_;
  RankOutput output_;
  MessageQueue to_stderr_;
  ChildProcess mpirun_;
  bool output_open_ = true;
  bool messages_open_ = true;
  train::StatusBoard board_;
  MpirunMessages messages_;
  RankWatch ranks_;

  /// The first rank that ended without saying why; several, where they were found together: mpirun ends the others of
  /// one that was killed.
  std::vector<int> suspects_;
  Clock::time_point suspects_ended_;
  std::optional<int> not_joined_;  ///< the first rank that ended by itself before it had joined
  bool settled_ = false;           ///< mpirun knows how the suspects ended
  bool joined_ = false;            ///< any rank of this machine has
  bool has_printed_ = false;       ///< any rank of any machine, on stdout
  bool stop_requested_ = false;
  bool stop_forced_ = false;  ///< the ranks were ended before they had saved
  RankSilence rank_silence_;
  std::optional<HostWatch> hosts_;
  std::chrono::milliseconds mpirun_stopped_{0};
  std::chrono::milliseconds starting_{0};       ///< without any rank of this machine
  std::chrono::milliseconds without_ranks_{0};  ///< that mpirun has gone on
  std::chrono::milliseconds leaving_{0};        ///< that ranks have gone on after all had their exit code
  Clock::time_point last_look_ = Clock::now();
  std::optional<Error> silence_;  ///< of a rank or of mpirun, which ended the ranks
  bool mpirun_hung_ = false;      ///< at the end, and was ended
  bool job_over_ = false;         ///< every rank had its exit code when they were taken down
  int stage_ = 0;                 ///< of taking the ranks down
  std::optional<Clock::time_point> next_stage_;
};

}  // namespace lockstep::launcher
