// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervisor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <string_view>
#include <utility>

#include "runtime/base/process.h"
#include "runtime/train/progress.h"
#include "runtime/train/signals.h"
#include "runtime/train/stdout_relay.h"
#include "runtime/train/terminal.h"

namespace lockstep::launcher {

using std::chrono::milliseconds;
using train::RankPhase;

namespace {

/// How often to look for ranks that have started. The end of a rank that was found is noticed at once.
constexpr milliseconds kStartPoll{20};
/// How often to look whether the ranks and mpirun go on.
constexpr milliseconds kLook{250};
/// From what the ranks notice themselves, by their own timeout, to what the supervisor has to.
constexpr milliseconds kRanksFirst{1000};
/// How long mpirun may take to notice which rank died first, and how, before the others are killed.
constexpr milliseconds kNoticeTime{1000};
constexpr milliseconds kNoticePoll{5};
/// From taking note of a rank's end to having acted on it.
constexpr milliseconds kSettleTime{50};
/// How long mpirun may take to end once its ranks are gone.
constexpr milliseconds kMpirunTime{2000};
/// How long it may take to end after ranks that have ended by themselves, with what it still has to pass on.
constexpr milliseconds kMpirunEnd{10'000};
/// How long killed ranks may take to be gone.
constexpr milliseconds kEndTime{5000};
/// How long ranks may take to save.
constexpr milliseconds kStopGrace{60'000};

/// Exit codes with which a rank ends the job on purpose, having said why.
bool is_own_code(int code) {
  return code == static_cast<int>(ExitCode::kPreempted) ||
         (code >= static_cast<int>(ExitCode::kUsage) && code <= static_cast<int>(ExitCode::kPeerLost));
}

Outcome because(const Error& error) {
  Outcome outcome;
  outcome.code = error.code();
  outcome.error = error;
  return outcome;
}

/// Hands `take` what can be read now; clears `open` at the end of the pipe.
template <class Take>
void drain(int descriptor, bool& open, Take&& take) {
  std::array<char, 4096> buffer;
  ssize_t count = -1;
  while (open && (count = read(descriptor, buffer.data(), buffer.size())) > 0) {
    take(std::string_view(buffer.data(), static_cast<std::size_t>(count)));
  }
  if (count == 0) open = false;
}

}  // namespace

Supervisor::Supervisor(const MpirunCommand& command, const train::StatusBoard& board, const SignalInbox& inbox,
                       Supervised supervised)
    : inbox_(inbox),
      supervised_(supervised),
      output_(stdout, train::Progress::is_live(supervised.output)),
      mpirun_(command),
      board_(board),
      ranks_(board),
      rank_silence_(supervised.timeout + kRanksFirst) {
  board_.set_columns(train::terminal_columns(train::StdoutRelay::descriptor()));
}

Outcome Supervisor::run() {
  while (!mpirun_.ended()) {
    wait();
    while (const int signal = inbox_.take()) {
      if (signal == SIGWINCH) board_.set_columns(train::terminal_columns(train::StdoutRelay::descriptor()));
      if (signal != SIGCHLD && signal != SIGWINCH) on_stop_request();
    }
    pass_output();
    ranks_.find_started();
    tell_of_joining();
    on_ranks_ended(ranks_.take_ended());
    look_for_silence();
    if (next_stage_ && Clock::now() >= *next_stage_) escalate();
  }
  ranks_.find_started();
  ranks_.kill_all();
  wait_for_ranks();
  pass_output();
  output_.finish();
  std::fputs(messages_.finish().c_str(), stderr);
  Outcome result = outcome();
  result.stop_requested = stop_requested_;
  for (int rank = 0; rank < board_.ranks(); ++rank) result.step = std::max(result.step, board_.get(rank).step);
  return result;
}

void Supervisor::wait() {
  std::vector<pollfd> watched = ranks_.descriptors();
  watched.push_back({inbox_.descriptor(), POLLIN, 0});
  if (output_open_) watched.push_back({mpirun_.output(), POLLIN, 0});
  if (messages_open_) watched.push_back({mpirun_.messages(), POLLIN, 0});
  milliseconds patience = ranks_.all_started() && !supervised_.joined ? kLook : kStartPoll;
  if (next_stage_) {
    const auto left = std::chrono::ceil<milliseconds>(*next_stage_ - Clock::now());
    patience = std::min(patience, std::max(left, milliseconds::zero()));
  }
  poll(watched.data(), watched.size(), static_cast<int>(patience.count()));
}

void Supervisor::pass_output() {
  drain(mpirun_.output(), output_open_, [this](std::string_view text) { output_.pass(text); });
  drain(mpirun_.messages(), messages_open_, [this](std::string_view text) {
    const std::string passed = messages_.feed(text);
    if (passed.empty()) return;
    output_.end_live_line();
    train::StdoutRelay::settle();
    std::fwrite(passed.data(), 1, passed.size(), stderr);
  });
}

void Supervisor::tell_of_joining() {
  if (supervised_.joined && ranks_.all_joined()) std::exchange(supervised_.joined, nullptr)();
}

void Supervisor::wait_for_ranks() {
  const Clock::time_point end = Clock::now() + kEndTime;
  for (std::vector<pollfd> left = ranks_.descriptors(); !left.empty() && Clock::now() < end;
       left = ranks_.descriptors()) {
    poll(left.data(), left.size(), static_cast<int>(kEndTime.count()));
    ranks_.take_ended();
  }
}

void Supervisor::acknowledge_stop() {
  if (supervised_.output.quiet) return;
  output_.end_live_line();
  std::FILE* const words = supervised_.output.json ? stderr : stdout;
  std::fputs(train::kStopNotice, words);
  std::fflush(words);
}

void Supervisor::on_stop_request() {
  const bool first = !stop_requested_;
  stop_requested_ = true;
  // The ranks have ended by themselves, and mpirun, which ends too, might die of the request: it has words to pass on.
  if (first && code_of_ranks()) return take_down(kMpirunEnd);
  const bool heard = supervised_.saves_on_request && (ranks_.any_at_work() || !supervised_.one_machine);
  if (first && heard) {
    acknowledge_stop();
    mpirun_.signal(SIGUSR1);
    take_down(kStopGrace);
  } else {
    take_down(milliseconds::zero());
  }
}

void Supervisor::on_ranks_ended(const std::vector<int>& ranks) {
  if (!suspects_.empty() || stage_ > 0) return;
  for (const int rank : ranks) {
    const RankPhase phase = ranks_.entry(rank).phase;
    if (phase == RankPhase::kNotJoined) {
      some_not_joined_ = true;
    } else if (phase != RankPhase::kDone && phase != RankPhase::kFailed) {
      suspects_.push_back(rank);
    }
  }
  // A rank that reports an error ends the others.
  if (ranks_.any_failed()) suspects_.clear();
  if (suspects_.empty()) return;
  suspects_ended_ = Clock::now();
  take_down(kNoticePoll);
}

void Supervisor::look_for_silence() {
  const Clock::time_point now = Clock::now();
  const auto elapsed = std::chrono::duration_cast<milliseconds>(now - last_look_);
  if (elapsed < kLook || !supervised_.one_machine) return;
  last_look_ = now;
  if (stage_ > 0) return;
  // Where the ranks were asked to save, they have the time that they get.
  if (!next_stage_) silence_ = silence(elapsed);
  // mpirun may wait for ever for somebody who has connected to it and says nothing.
  const bool alone = code_of_ranks() && ranks_.running().empty();
  without_ranks_ = alone ? without_ranks_ + std::min(elapsed, 4 * kLook) : milliseconds::zero();
  mpirun_hung_ = without_ranks_ > kMpirunEnd;
  if (silence_ || mpirun_hung_) take_down(milliseconds::zero());
}

std::optional<Error> Supervisor::silence(milliseconds elapsed) {
  mpirun_stopped_ = mpirun_.stopped() ? mpirun_stopped_ + std::min(elapsed, 4 * kLook) : milliseconds::zero();
  if (mpirun_stopped_ >= supervised_.timeout) {
    return PeerError("mpirun, which holds the ranks, has been stopped (SIGSTOP)", advice());
  }
  return rank_silence_.look(ranks_, elapsed);
}

std::optional<int> Supervisor::code_of_ranks() const {
  int code = 0;
  for (int rank = 0; rank < board_.ranks(); ++rank) {
    const int own = board_.get(rank).exit_code;
    if (own < 0) return std::nullopt;
    code = std::max(code, own);
  }
  return code;
}

void Supervisor::take_down(milliseconds delay) {
  const Clock::time_point start = Clock::now() + delay;
  if (stage_ == 0 && (!next_stage_ || start < *next_stage_)) next_stage_ = start;
}

bool Supervisor::mpirun_has_noticed() const {
  // A process that has ended keeps its number until mpirun takes note.
  const bool taken_note = std::ranges::none_of(
      suspects_, [this](int rank) { return process_exists(static_cast<pid_t>(ranks_.entry(rank).pid)); });
  return taken_note || Clock::now() > suspects_ended_ + kNoticeTime;
}

void Supervisor::escalate() {
  if (stage_ == 0 && !suspects_.empty() && !settled_) {
    settled_ = mpirun_has_noticed();
    next_stage_ = Clock::now() + (settled_ ? kSettleTime : kNoticePoll);
    return;
  }
  if (stage_++ > 0) {
    mpirun_.signal(SIGKILL);
    next_stage_.reset();
    return;
  }
  job_over_ = code_of_ranks().has_value();
  stop_forced_ = stop_requested_ && suspects_.empty() && !job_over_;
  ranks_.kill_all();
  if (mpirun_hung_) {
    mpirun_.signal(SIGKILL);
    next_stage_.reset();
    return;
  }
  // mpirun ends by itself once a rank has, and may crash or hang if told to meanwhile; ranks elsewhere are its to end.
  if (!ranks_.any_started() || !supervised_.one_machine) mpirun_.signal(SIGTERM);
  next_stage_ = Clock::now() + kMpirunTime;
}

Outcome Supervisor::outcome() const {
  const std::optional<int> of_ranks = job_over_ || mpirun_.was_killed() ? code_of_ranks() : std::nullopt;
  const int code = of_ranks.value_or(mpirun_.exit_code());
  if (silence_ && !stop_requested_) return because(*silence_);
  // Whoever tells mpirun to stop as well has it end the ranks before they have saved.
  if (stop_forced_ || (stop_requested_ && !suspects_.empty())) {
    return because(Error(ExitCode::kPreempted, "stopped, as asked, without saving",
                         "Run the same command again; a training run resumes from its newest checkpoint."));
  }
  // A rank on another machine may have ended the job on purpose, and this one with it.
  const bool explained = !supervised_.one_machine && is_own_code(code);
  if (!suspects_.empty() && !explained) return lost_rank(culprit());
  if (code == 0 || is_own_code(code)) return {.code = static_cast<ExitCode>(code)};
  if (!messages_.signals().empty()) return lost_rank(messages_.signals().begin()->first);
  // That it was killed says nothing of the machine, even where no rank had begun.
  if (ranks_.any_at_work() || mpirun_.was_killed()) {
    const std::string how =
        code > 128 ? fmt::format("was killed (signal {})", code - 128) : fmt::format("ended with exit code {}", code);
    return because(PeerError("mpirun, which holds the ranks, " + how + quoted_remarks(), advice()));
  }
  return because(EnvironmentError("mpirun could not start the ranks" + quoted_remarks()));
}

Outcome Supervisor::lost_rank(int rank) const {
  Outcome outcome = because(lost(rank));
  outcome.where = fmt::format("rank {}, {}", rank, train::str(board_.get(rank)));
  return outcome;
}

int Supervisor::culprit() const {
  // mpirun names the first one that it saw end: a suspect, or one that ended before it could be watched. Any other is
  // one that was killed after the first.
  for (const auto& [rank, signal] : messages_.signals()) {
    if (ranks_.entry(rank).pid == 0 || std::ranges::find(suspects_, rank) != suspects_.end()) return rank;
  }
  return suspects_.front();
}

Error Supervisor::lost(int rank) const {
  const train::StatusBoard::Entry entry = ranks_.entry(rank);
  const std::string process = entry.pid == 0 ? "" : fmt::format(" (pid {})", entry.pid);
  const auto signal = messages_.signals().find(rank);
  const bool killed = signal != messages_.signals().end();
  const std::string how = killed ? fmt::format("was killed (signal {})", signal->second) : "ended unexpectedly";
  const std::string what = fmt::format("rank {}{} {} {}", rank, process, how, train::str(entry));
  if (messages_.signals().empty() && entry.phase < RankPhase::kJoined) {
    // Of ranks that cannot join the others the first one ends by itself; mpirun ends those that are left.
    if (some_not_joined_ && !messages_.remarks().empty()) return EnvironmentError(what + quoted_remarks());
    return PeerError(what, "Open MPI has not said why; it now and then loses its last words: try again.");
  }
  const bool may_be_memory = killed && signal->second == SIGKILL;
  const std::string hint = may_be_memory ? "If nobody killed it, memory may have run out: see dmesg.\n" : "";
  // Where mpirun names another rank, it is one that was killed after this one.
  return PeerError(what + (messages_.signals().empty() ? quoted_remarks() : ""), hint + advice());
}

std::string Supervisor::quoted_remarks() const {
  return messages_.remarks().empty() ? "" : ":\n" + messages_.remarks();
}

std::string Supervisor::advice() const {
  if (!supervised_.saves_on_request) return "Run the same command again.";
  return "Run the same command again to resume from the newest checkpoint; --max-restarts does so by itself.";
}

}  // namespace lockstep::launcher
