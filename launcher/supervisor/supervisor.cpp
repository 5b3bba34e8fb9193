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

#include "launcher/supervisor/start_failure.h"
#include "runtime/base/process.h"
#include "runtime/base/program_search.h"
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
/// How long mpirun may take at least to start the first rank on this and other machines.
constexpr milliseconds kLeastStart{15'000};
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

Supervisor::Supervisor(const ChildCommand& command, const train::StatusBoard& board, const SignalInbox& inbox,
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
  if (supervised_.hosts.empty()) return;
  if (const auto ssh = find_program("ssh")) {
    hosts_.emplace(*ssh, supervised_.hosts, supervised_.timeout + kRanksFirst);
  } else {
    spdlog::warn("there is no ssh in PATH: the loss of another host is left to the ranks to notice");
  }
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
    joined_ = joined_ || ranks_.any_joined();
    tell_of_joining();
    if (has_printed_ || ranks_.any_started()) tell_of_unwatched_hosts();
    on_ranks_ended(ranks_.take_ended());
    look_for_silence();
    if (next_stage_ && Clock::now() >= *next_stage_) escalate();
  }
  ranks_.find_started();
  // An mpirun that crashed has left what it started.
  if (!supervised_.one_machine) mpirun_.kill_with_children();
  // mpirun may end in the same moment.
  on_ranks_ended(ranks_.take_ended());
  ranks_.kill_all();
  wait_for_ranks();
  pass_output();
  output_.finish();
  const std::string last = messages_.finish();
  Outcome result = outcome();
  if (result.mpirun_said.empty()) tell_of_unwatched_hosts();
  finish_messages(last, !result.mpirun_said.empty());
  result.stop_requested = stop_requested_;
  result.step = newest_step();
  result.joined = !supervised_.ranks_here || joined_;
  if (hosts_) result.hosts = hosts_->reached();
  return result;
}

std::uint64_t Supervisor::newest_step() const {
  std::uint64_t step = 0;
  for (int rank = 0; rank < board_.ranks(); ++rank) step = std::max(step, board_.get(rank).step);
  return step;
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
  drain(mpirun_.output(), output_open_, [this](std::string_view text) {
    if (!has_printed_ && is_count_of_failed_starts(text)) return;
    has_printed_ = true;
    output_.pass(text);
  });
  std::string passed = has_printed_ || ranks_.any_started() ? messages_.release() : "";
  drain(mpirun_.messages(), messages_open_, [&](std::string_view text) { passed += messages_.feed(text); });
  if (!passed.empty()) {
    output_.end_live_line();
    train::StdoutRelay::settle();
    to_stderr_.push(passed);
  }
  to_stderr_.write();
}

void Supervisor::finish_messages(const std::string& last, bool start_failed) {
  to_stderr_.push((start_failed ? "" : messages_.release()) + last);
  const std::uint64_t dropped = to_stderr_.finish(kLastWords);
  pollfd target{STDERR_FILENO, POLLOUT, 0};
  if (dropped == 0 || poll(&target, 1, 0) <= 0) return;
  spdlog::warn("{} lines that the ranks printed on stderr were dropped: nobody read them", dropped);
}

void Supervisor::tell_of_joining() {
  if (supervised_.joined && ranks_.all_joined()) std::exchange(supervised_.joined, nullptr)();
}

void Supervisor::tell_of_unwatched_hosts() {
  if (!hosts_) return;
  for (const std::string& sentence : hosts_->take_unwatched()) spdlog::warn(sentence);
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
  if (!supervised_.one_machine) mpirun_.watch_children();
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
  if (const auto host = hosts_ ? hosts_->look() : std::nullopt) {
    const std::uint64_t step = newest_step();
    return PeerError(
        fmt::format("host {} no longer answers{}", *host, step > 0 ? fmt::format(", at step {}", step) : ""),
        "Look whether it runs and ssh leads there. " + advice());
  }
  if (!supervised_.one_machine) return not_started(elapsed);
  return rank_silence_.look(ranks_, elapsed);
}

std::optional<Error> Supervisor::not_started(milliseconds elapsed) {
  lengthen(starting_, supervised_.ranks_here && !ranks_.any_started(), elapsed);
  const milliseconds limit = std::max(supervised_.timeout + kRanksFirst, kLeastStart);
  if (starting_ < limit) return std::nullopt;
  return PeerError(
      fmt::format("no rank has started within {} s: mpirun's daemons on {} have not connected to this host",
                  std::chrono::duration_cast<std::chrono::seconds>(limit).count(), fmt::join(supervised_.hosts, ", ")),
      "Open the ports between the hosts, or name a network that leads to all of them: --interface "
      "NAME|NET. Where the hosts are only slow, raise comm.timeout_s.");
}

bool Supervisor::end_hangs(milliseconds elapsed) {
  if (!supervised_.one_machine) {
    // A rank here that failed has mpirun end the others, which may wait for ever for a host that no longer answers.
    lengthen(leaving_, code_so_far() > 0, elapsed);
    mpirun_hung_ = leaving_ >= supervised_.timeout + kRanksFirst;
    return mpirun_hung_;
  }
  // mpirun may wait for ever for somebody who has connected to it and says nothing.
  lengthen(without_ranks_, ranks_.all_ended(), elapsed);
  mpirun_hung_ = without_ranks_ > kMpirunEnd;
  // So may ranks that leave the others.
  lengthen(leaving_, !ranks_.all_ended() && code_of_ranks(), elapsed);
  return mpirun_hung_ || leaving_ >= supervised_.timeout + kRanksFirst;
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
    mpirun_.kill_with_children();
    next_stage_.reset();
    return;
  }
  job_over_ = code_of_ranks().has_value();
  stop_forced_ = stop_requested_ && suspects_.empty() && !job_over_;
  ranks_.kill_all();
  // An Open MPI 4.1 that is ending the ranks already would crash if asked once more.
  if (mpirun_hung_ || (!supervised_.one_machine && code_so_far() > 0)) {
    mpirun_.kill_with_children();
    next_stage_.reset();
    return;
  }
  // mpirun ends by itself once a rank has, and may crash or hang if told to meanwhile; ranks elsewhere are its to end.
  if (!ranks_.any_started() || !supervised_.one_machine) mpirun_.signal(SIGTERM);
  next_stage_ = Clock::now() + kMpirunTime;
}

}  // namespace lockstep::launcher
