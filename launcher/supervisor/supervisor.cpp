// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervisor/supervisor.h"

#include <fmt/format.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <string_view>
#include <utility>

#include "comm/group/rank_names.h"
#include "runtime/base/process.h"
#include "runtime/train/record/progress.h"
#include "runtime/train/record/stdout_relay.h"
#include "runtime/train/record/terminal.h"
#include "runtime/train/signals.h"

namespace lockstep::launcher {

using std::chrono::milliseconds;
using train::RankPhase;

namespace {

/// How often to look for ranks that have started, and whether stderr takes what waits. The end of a rank that was found
/// is noticed at once.
constexpr milliseconds kStartPoll{20};
/// How often to look whether the ranks and mpirun go on.
constexpr milliseconds kLook{250};
/// How much longer than the ranks' own timeout the supervisor waits, so that the ranks notice first.
constexpr milliseconds kRanksFirst{1000};
/// How long mpirun may take to notice which rank died first, and how, before the others are killed.
constexpr milliseconds kNoticeTime{1000};
constexpr milliseconds kNoticePoll{5};
/// From taking note of a rank's end to having acted on it.
constexpr milliseconds kSettleTime{50};
/// How long mpirun may take to end once its ranks are gone.
constexpr milliseconds kMpirunTime{2000};
/// How long it may take to say why the first rank ended, before any rank works.
constexpr milliseconds kRemarkTime{2000};
/// How long it may take to end after ranks that have ended by themselves, with what it still has to pass on.
constexpr milliseconds kMpirunEnd{10'000};
/// How long killed ranks may take to be gone.
constexpr milliseconds kEndTime{5000};
/// How long a stderr that nobody reads may take for the last words.
constexpr milliseconds kLastWords{2000};
/// How long ranks may take to save.
constexpr milliseconds kStopGrace{60'000};

/// Exit codes with which a rank ends the job on purpose, having said why.
bool is_own_code(int code) {
  return code == static_cast<int>(ExitCode::kPreempted) ||
         (code >= static_cast<int>(ExitCode::kUsage) && code <= static_cast<int>(ExitCode::kPeerLost));
}

/// The more telling of two ranks' exit codes: a rank that lost another one does not know why.
int more_telling(int a, int b) {
  const auto weight = [](int code) { return code == static_cast<int>(ExitCode::kPeerLost) ? 1 : code; };
  return weight(a) < weight(b) ? b : a;
}

Outcome because(const Error& error) {
  Outcome outcome;
  outcome.code = error.code();
  outcome.error = error;
  return outcome;
}

/// The likely sender of a signal that ended a rank; a line, or nothing.
std::string hint_on(int signal) {
  return signal == SIGKILL ? "If nobody killed it, memory may have run out: see dmesg.\n" : "";
}

Outcome stopped_without_saving() {
  return because(Error(ExitCode::kPreempted, "stopped, as asked, without saving",
                       "Run the same command again; a training run resumes from its newest checkpoint."));
}

/// Adds `elapsed` to the time that something has held; what does not hold has held for no time. Where much more has
/// passed than between two looks, it is this process that stood still.
void lengthen(milliseconds& time, bool holds, milliseconds elapsed) {
  time = holds ? time + std::min(elapsed, 4 * kLook) : milliseconds::zero();
}

/// Hands `take` what can be read now, as much as a pipe holds: who prints without end must not keep others waiting.
/// Clears `open` at the end of the pipe.
template <class Take>
void drain(int descriptor, bool& open, Take&& take) {
  constexpr int kReadsOfAPipe = 16;
  std::array<char, 4096> buffer;
  ssize_t count = -1;
  for (int i = 0; open && i < kReadsOfAPipe && (count = read(descriptor, buffer.data(), buffer.size())) > 0; ++i) {
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
      to_stderr_(STDERR_FILENO),
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
  // mpirun may end in the same moment.
  on_ranks_ended(ranks_.take_ended());
  ranks_.kill_all();
  wait_for_ranks();
  pass_output();
  output_.finish();
  finish_messages();
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
  const bool is_quiet = ranks_.all_started() && !supervised_.joined && !to_stderr_.waits();
  milliseconds patience = is_quiet ? kLook : kStartPoll;
  if (next_stage_) {
    const auto left = std::chrono::ceil<milliseconds>(*next_stage_ - Clock::now());
    patience = std::min(patience, std::max(left, milliseconds::zero()));
  }
  poll(watched.data(), watched.size(), static_cast<int>(patience.count()));
}

void Supervisor::pass_output() {
  drain(mpirun_.output(), output_open_, [this](std::string_view text) { output_.pass(text); });
  std::string passed;
  drain(mpirun_.messages(), messages_open_, [&](std::string_view text) { passed += messages_.feed(text); });
  if (!passed.empty()) {
    output_.end_live_line();
    train::StdoutRelay::settle();
    to_stderr_.push(passed);
  }
  to_stderr_.write();
}

void Supervisor::finish_messages() {
  to_stderr_.push(messages_.finish());
  const std::uint64_t dropped = to_stderr_.finish(kLastWords);
  pollfd target{STDERR_FILENO, POLLOUT, 0};
  if (dropped == 0 || poll(&target, 1, 0) <= 0) return;
  spdlog::warn("{} lines that the ranks printed on stderr were dropped: nobody read them", dropped);
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
  output_.make_room_for_answer();
  if (supervised_.output.json) return to_stderr_.push(train::kStopNotice);
  std::fputs(train::kStopNotice, stdout);
  std::fflush(stdout);
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
      not_joined_ = not_joined_.value_or(rank);
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
  if (elapsed < kLook) return;
  last_look_ = now;
  if (stage_ > 0) return;
  // Where the ranks were asked to save, they have the time that they get.
  if (!next_stage_) silence_ = silence(elapsed);
  if (end_hangs(elapsed) || silence_) take_down(milliseconds::zero());
}

std::optional<Error> Supervisor::silence(milliseconds elapsed) {
  lengthen(mpirun_stopped_, mpirun_.stopped(), elapsed);
  if (mpirun_stopped_ >= supervised_.timeout) {
    return PeerError("mpirun, which holds the ranks, has been stopped (SIGSTOP)", advice());
  }
  if (!supervised_.one_machine) return std::nullopt;
  return rank_silence_.look(ranks_, elapsed);
}

bool Supervisor::end_hangs(milliseconds elapsed) {
  if (!supervised_.one_machine) return false;
  // mpirun may wait for ever for somebody who has connected to it and says nothing.
  lengthen(without_ranks_, ranks_.all_ended(), elapsed);
  mpirun_hung_ = without_ranks_ > kMpirunEnd;
  // So may ranks that leave the others.
  lengthen(leaving_, !ranks_.all_ended() && code_of_ranks(), elapsed);
  return mpirun_hung_ || leaving_ >= supervised_.timeout + kRanksFirst;
}

std::optional<int> Supervisor::code_of_ranks() const {
  for (int rank = 0; rank < board_.ranks(); ++rank) {
    if (board_.get(rank).exit_code < 0) return std::nullopt;
  }
  return code_so_far();
}

int Supervisor::code_so_far() const {
  int code = 0;
  for (int rank = 0; rank < board_.ranks(); ++rank) {
    if (const int own = board_.get(rank).exit_code; own > 0) code = more_telling(code, own);
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
    // Before any rank works nothing is lost by waiting, and mpirun may still say why the first one ended.
    const milliseconds settling = ranks_.any_at_work() ? kSettleTime : kRemarkTime;
    next_stage_ = Clock::now() + (settled_ ? settling : kNoticePoll);
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
  // To mpirun, ranks that are done end with 0; those on other machines, which have no board, with their code.
  const int of_mpirun = mpirun_.exit_code() == 0 ? code_so_far() : mpirun_.exit_code();
  const int code = of_ranks.value_or(of_mpirun);
  // Ranks that are done were stopped, or lost their mpirun, too late to matter.
  if (silence_ && !stop_requested_ && !of_ranks) return because(*silence_);
  // Whoever tells mpirun to stop as well has it end the ranks before they have saved.
  if (stop_forced_ || (stop_requested_ && !suspects_.empty())) return stopped_without_saving();
  if (mpirun_hung_ && !of_ranks) return outcome_without_mpirun();
  // A rank on another machine may have ended the job on purpose, and this one with it.
  const bool explained = !supervised_.one_machine && is_own_code(code);
  if (!suspects_.empty() && !explained) return lost_rank(culprit());
  if (code == 0 || is_own_code(code)) return {.code = static_cast<ExitCode>(code)};
  // An mpirun that has just begun, and ranks on other machines, die of the request that is passed on to them.
  if (stop_requested_) return stopped_without_saving();
  if (!messages_.signals().empty()) return lost_rank(messages_.signals().begin()->first);
  // mpirun now and then loses its words on a rank that was killed.
  if (mpirun_names_signal() && messages_.remarks().empty()) return because(lost_unseen(code - 128));
  if (not_joined_ && !mpirun_.was_killed()) return lost_rank(*not_joined_);
  // Its being killed says nothing of the machine, even where no rank had begun.
  if (ranks_.any_at_work() || mpirun_.was_killed()) {
    const std::string how =
        code > 128 ? fmt::format("was killed (signal {})", code - 128) : fmt::format("ended with exit code {}", code);
    return because(PeerError("mpirun, which holds the ranks, " + how + quoted_remarks(), advice()));
  }
  return because(EnvironmentError("mpirun could not start the ranks" + quoted_remarks()));
}

Outcome Supervisor::outcome_without_mpirun() const {
  // A rank that reports an error ends the others.
  if (const int code = code_so_far(); code > 0) return {.code = static_cast<ExitCode>(code)};
  int without_code = 0;
  while (without_code + 1 < board_.ranks() && board_.get(without_code).exit_code >= 0) ++without_code;
  return lost_rank(without_code);
}

Outcome Supervisor::lost_rank(int rank) const {
  Outcome outcome = because(lost(rank));
  outcome.where = fmt::format("rank {}, {}", rank, train::str(board_.get(rank)));
  return outcome;
}

int Supervisor::culprit() const {
  // mpirun names the first rank that it saw end: a suspect, or a rank that ended before we could watch it. Any other
  // rank that it names was killed after the first.
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
  const bool has_joined = entry.phase >= RankPhase::kJoined && entry.phase != RankPhase::kNotJoined;
  if (messages_.signals().empty() && !has_joined) {
    // The first rank that cannot join ends by itself, with or without a note, and mpirun kills the others; its remark
    // is the cause.
    const bool by_itself = not_joined_ || (!mpirun_.was_killed() && !mpirun_names_signal());
    if (by_itself && !messages_.remarks().empty()) return EnvironmentError(what + quoted_remarks());
    return PeerError(what, "Open MPI has not said why; it now and then loses its last words: try again.");
  }
  const std::string hint = killed ? hint_on(signal->second) : "";
  // Where mpirun names another rank, it is one that was killed after this one.
  return PeerError(what + (messages_.signals().empty() ? quoted_remarks() : ""), hint + advice());
}

bool Supervisor::mpirun_names_signal() const {
  const int code = mpirun_.exit_code();
  return code > 128 && code <= 128 + SIGRTMAX && !mpirun_.was_killed();
}

Error Supervisor::lost_unseen(int signal) const {
  std::vector<int> unseen;
  for (int rank = 0; rank < board_.ranks(); ++rank) {
    if (ranks_.entry(rank).pid == 0) unseen.push_back(rank);
  }
  const std::string who = unseen.empty() ? "a rank" : (unseen.size() > 1 ? "one of " : "") + comm::rank_names(unseen);
  return PeerError(fmt::format("{} was killed (signal {}); Open MPI has not said more", who, signal),
                   hint_on(signal) + advice());
}

std::string Supervisor::quoted_remarks() const {
  return messages_.remarks().empty() ? "" : ":\n" + messages_.remarks();
}

std::string Supervisor::advice() const {
  if (!supervised_.saves_on_request) return "Run the same command again.";
  return "Run the same command again to resume from the newest checkpoint; --max-restarts does so by itself.";
}

}  // namespace lockstep::launcher
