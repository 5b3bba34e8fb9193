// SPDX-License-Identifier: Apache-2.0
// Derives the outcome of a run from how its ranks and mpirun ended.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "comm/group/rank_names.h"
#include "launcher/supervisor/start_failure.h"
#include "launcher/supervisor/supervisor.h"
#include "runtime/base/program_name.h"

namespace lockstep::launcher {

using train::RankPhase;

namespace {

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

}  // namespace

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

Outcome Supervisor::outcome() const {
  const std::optional<int> of_ranks = job_over_ || mpirun_.was_killed() ? code_of_ranks() : std::nullopt;
  // To mpirun, ranks that are done end with 0; those on other machines, which have no board, with their code.
  const int of_mpirun = mpirun_.exit_code() == 0 ? code_so_far() : mpirun_.exit_code();
  const int code = of_ranks.value_or(of_mpirun);
  // Ranks that are done were stopped, or lost their mpirun, too late to matter.
  if (silence_ && !stop_requested_ && !of_ranks) return because(*silence_);
  // An mpirun that is told to stop as well ends the ranks before they have saved.
  if (stop_forced_ || (stop_requested_ && !suspects_.empty())) return stopped_without_saving();
  if (const auto failed = failed_start()) return *failed;
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

std::optional<Outcome> Supervisor::failed_start() const {
  if (joined_ || stop_requested_ || code_so_far() > 0) return std::nullopt;
  const std::optional<StartFailure> failure = start_failure(messages_.remarks(), messages_.held());
  if (!failure) return std::nullopt;
  const std::string hosts = fmt::format("{}", fmt::join(supervised_.hosts, ","));
  const std::string more =
      hosts.empty() ? "" : fmt::format("{} doctor --hosts {} says what else is missing; ", program_name(), hosts);
  Outcome outcome =
      because(EnvironmentError("mpirun could not start the ranks: " + failure->what,
                               fmt::format("{}\n{}--verbose prints mpirun's own words.", failure->advice, more)));
  outcome.mpirun_said = messages_.held() + messages_.remarks();
  return outcome;
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
  outcome.where = fmt::format("rank {}, {}", rank, moment_of(rank));
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

std::string Supervisor::moment_of(int rank) const {
  const train::StatusBoard::Entry entry = ranks_.entry(rank);
  const std::uint64_t step = newest_step();
  const bool is_elsewhere = !supervised_.one_machine && entry.pid == 0;
  return is_elsewhere && step > 0 ? fmt::format("at step {}", step) : train::str(entry);
}

Error Supervisor::lost(int rank) const {
  const train::StatusBoard::Entry entry = ranks_.entry(rank);
  const std::string process = entry.pid == 0 ? "" : fmt::format(" (pid {})", entry.pid);
  const auto signal = messages_.signals().find(rank);
  const bool killed = signal != messages_.signals().end();
  const std::string how = killed ? fmt::format("was killed (signal {})", signal->second) : "ended unexpectedly";
  const std::string what = fmt::format("rank {}{} {} {}", rank, process, how, moment_of(rank));
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
