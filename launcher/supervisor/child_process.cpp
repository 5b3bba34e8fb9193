// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervisor/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <system_error>
#include <utility>

#include "runtime/base/error.h"

namespace lockstep::launcher {

namespace {

/// In the child: becomes the program, or says through `failure` why not.
[[noreturn]] void become(char* const* arguments, char* const* environment, int output, int messages, int failure,
                         pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  std::signal(SIGPIPE, SIG_DFL);
  // Out of the terminal's process group, reading from it would stop it.
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(messages, STDERR_FILENO);
  execve(arguments[0], arguments, environment);
  const int error = errno;
  [[maybe_unused]] const ssize_t written = write(failure, &error, sizeof error);
  _exit(1);
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

std::vector<std::string> environment_with(const std::map<std::string, std::string>& changes) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!changes.contains(text.substr(0, text.find('=')))) result.push_back(text);
  }
  for (const auto& [name, value] : changes) result.push_back(name + "=" + value);
  return result;
}

/// The two ends of a pipe, which close when another program starts.
struct Pipe {
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
      throw EnvironmentError("cannot make a pipe: " + std::generic_category().message(errno));
    }
    reading.reset(ends[0]);
    writing.reset(ends[1]);
  }

  Descriptor reading;
  Descriptor writing;
};

Descriptor without_blocking(Descriptor end) {
  fcntl(end.get(), F_SETFL, O_NONBLOCK);
  return end;
}

}  // namespace

ChildProcess::ChildProcess(const ChildCommand& command) {
  std::vector<std::string> arguments = command.arguments;
  std::vector<std::string> environment = environment_with(command.environment);
  const std::vector<char*> argument_pointers = pointers(arguments);
  const std::vector<char*> environment_pointers = pointers(environment);
  Pipe output, messages, failure;
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) {
    become(argument_pointers.data(), environment_pointers.data(), output.writing.get(), messages.writing.get(),
           failure.writing.get(), parent);
  }
  int error = pid_ < 0 ? errno : 0;
  failure.writing.reset();
  // Nothing comes where it has started: its end of the pipe is closed by then.
  [[maybe_unused]] const ssize_t bytes = read(failure.reading.get(), &error, sizeof error);
  if (error != 0) {
    if (pid_ > 0) waitpid(pid_, nullptr, 0);
    throw EnvironmentError("cannot start " + arguments[0] + ": " + std::generic_category().message(error),
                           "Look whether this user may start it, and for a limit on processes (ulimit -u).");
  }
  output_ = without_blocking(std::move(output.reading));
  messages_ = without_blocking(std::move(messages.reading));
}

ChildProcess::~ChildProcess() {
  if (!ended()) {
    signal(SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
}

void ChildProcess::signal(int number) const {
  if (!status_) signal_child(pid_, number);
}

void ChildProcess::watch_children() {
  if (status_) return;
  // The system may not tell: there are none then.
  std::ifstream list(fmt::format("/proc/{0}/task/{0}/children", pid_));
  for (pid_t child = 0; list >> child;) {
    const auto is_known = [child](const ProcessWatch& known) { return known.pid() == child && !known.gone(); };
    if (std::ranges::none_of(children_, is_known)) children_.emplace_back(child);
  }
}

void ChildProcess::kill_with_children() {
  watch_children();
  signal(SIGKILL);
  for (const ProcessWatch& child : children_) child.signal(SIGKILL);
}

bool ChildProcess::stopped() const {
  const std::optional<ProcessFacts> facts = status_ ? std::nullopt : process_facts(pid_);
  return facts && (facts->state == 'T' || facts->state == 't');
}

bool ChildProcess::ended() {
  int status = 0;
  if (!status_ && waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
  return status_.has_value();
}

int ChildProcess::exit_code() const {
  const int status = status_.value();
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool ChildProcess::was_killed() const { return WIFSIGNALED(status_.value()); }

}  // namespace lockstep::launcher
