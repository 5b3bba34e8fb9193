// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervisor/error_block.h"

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <sstream>
#include <thread>

#include "runtime/base/printable.h"
#include "runtime/train/record/stdout_relay.h"
#include "runtime/train/record/terminal.h"
#include "runtime/train/record/write_stderr.h"

namespace lockstep::launcher {

namespace {

using std::chrono::milliseconds;

std::string kind_of(ExitCode code) {
  switch (code) {
    case ExitCode::kDone:
      return "done";
    case ExitCode::kUsage:
      return "usage";
    case ExitCode::kEnvironment:
      return "environment";
    case ExitCode::kStorage:
      return "storage";
    case ExitCode::kNumerics:
      return "numerics";
    case ExitCode::kMemory:
      return "memory";
    case ExitCode::kPeerLost:
      return "peer lost";
    case ExitCode::kPreempted:
      return "preempted";
  }
  return "unknown";
}

std::string indented(const std::string& text, const std::string& first, const std::string& rest) {
  std::istringstream lines(printable(text));
  std::string result;
  for (std::string line; std::getline(lines, line);) result += (result.empty() ? first : rest) + line + "\n";
  return result;
}

/// How long a failed rank waits for a rank that is closer to the cause, which reports and ends this one. Where the
/// ranks have not found each other, each host has something to tell, once.
milliseconds patience(ExitCode code, int rank, int local_rank, bool joined) {
  if (code == ExitCode::kPeerLost && !joined && local_rank > 0) return milliseconds(3000);
  if (code == ExitCode::kPeerLost) return milliseconds(rank == 0 ? 800 : 1200);
  if (rank == 0) return milliseconds(0);
  // mpirun lets a second pass before it ends the others of a rank that just exits.
  return milliseconds(joined ? 500 : 1500);
}

}  // namespace

std::string error_block(const Error& error, const std::string& where, bool color) {
  const std::string red = color ? "\033[1;31m" : "";
  const std::string plain = color ? "\033[0m" : "";
  return fmt::format("lockstep: {}error{}{}{} ({}, exit {})\n{}{}", red, plain, where.empty() ? "" : " ", where,
                     kind_of(error.code()), static_cast<int>(error.code()), indented(error.what(), "  ", "  "),
                     indented(error.advice(), "  → ", "    "));
}

void print_error(const Error& error, const std::string& where) {
  train::end_live_line();
  const std::string block = error_block(error, where, train::shows_color(stderr));
  std::fflush(stdout);
  train::StdoutRelay::settle();
  train::write_stderr(block, train::Words::kLast);
}

void give_way(const Error& error, bool joined) {
  const comm::LaunchEnvironment environment = environment_or_lone();
  if (environment.launcher == comm::LaunchEnvironment::Launcher::kTorchrun) {
    // It asks the ranks beside a lost one to end as soon as it sees it, and they have not said yet what they met.
    for (const int number : {SIGTERM, SIGINT}) std::signal(number, SIG_IGN);
  }
  if (environment.size > 1)
    std::this_thread::sleep_for(patience(error.code(), environment.rank, environment.local_rank, joined));
}

comm::LaunchEnvironment environment_or_lone() {
  try {
    return comm::launch_environment();
  } catch (const Error&) {
    return {};
  }
}

int report(const Error& error) {
  const comm::LaunchEnvironment environment = environment_or_lone();
  print_error(error, environment.size == 1 ? "" : "on rank " + std::to_string(environment.rank));
  return static_cast<int>(error.code());
}

}  // namespace lockstep::launcher
