// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/process.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace lockstep {

namespace {

std::invalid_argument no_signal_for(pid_t pid, const std::string& reason) {
  return std::invalid_argument(fmt::format("process {} gets no signal: {}", pid, reason));
}

}  // namespace

void signal_child(pid_t child, int number) {
  if (child <= 1) throw no_signal_for(child, "this is not the number of one child");
  // Until it is waited for, a child keeps its number.
  siginfo_t state{};
  if (waitid(P_PID, static_cast<id_t>(child), &state, WEXITED | WNOHANG | WNOWAIT) != 0) {
    throw no_signal_for(child, "it is no child of process " + std::to_string(getpid()));
  }
  ::kill(child, number);
}

bool process_exists(pid_t pid) { return pid > 0 && (::kill(pid, 0) == 0 || errno == EPERM); }

std::optional<ProcessFacts> process_facts(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  // By the stream, which takes the error of a process that has ended since for an end; its buffer throws it.
  std::string text;
  std::getline(stat, text, '\0');
  const std::size_t name_end = text.rfind(')');  // the name before it may hold anything
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(name_end + 1));
  const std::vector<std::string> values{std::istream_iterator<std::string>(fields), {}};
  if (values.size() < 20) return std::nullopt;
  return ProcessFacts{values[0].front(), std::strtoull(values[19].c_str(), nullptr, 10)};
}

ProcessWatch::ProcessWatch(pid_t pid) : pid_(pid), descriptor_(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))) {}

bool ProcessWatch::gone() const {
  pollfd ended{descriptor_.get(), POLLIN, 0};
  return descriptor_ && poll(&ended, 1, 0) > 0;
}

void ProcessWatch::signal(int number) const {
  if (pid_ == 1) throw no_signal_for(pid_, "it is the machine's first process");
  if (descriptor_) syscall(SYS_pidfd_send_signal, descriptor_.get(), number, nullptr, 0);
}

}  // namespace lockstep
