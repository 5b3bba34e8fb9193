// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record/event_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <mutex>
#include <system_error>
#include <utility>

#include "runtime/base/blocked_signals.h"
#include "runtime/base/descriptor.h"
#include "runtime/base/error.h"
#include "runtime/train/record/output_queue.h"

namespace lockstep::train {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

namespace {

constexpr std::size_t kBytesAtOnce = std::size_t{64} << 10;
constexpr milliseconds kCommandPoll{20};
constexpr milliseconds kEndOfDying{1000};

/// Owns what posix_spawn() takes.
struct Actions {
  Actions() {
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
  }
  ~Actions() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
  Actions(const Actions&) = delete;
  Actions& operator=(const Actions&) = delete;

  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
};

EnvironmentError cannot_start(const std::string& command, int error) {
  return EnvironmentError("cannot start the command of --on-event, " + command + ": " +
                          std::generic_category().message(error));
}

pid_t start(std::string command, int input) {
  Actions actions;
  posix_spawn_file_actions_adddup2(&actions.files, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions.files, STDERR_FILENO, STDOUT_FILENO);
  // What others wait for the end of, such as MPI's sockets, is not the command's to hold.
  posix_spawn_file_actions_addclosefrom_np(&actions.files, STDERR_FILENO + 1);
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&actions.attributes, &none);
  posix_spawnattr_setsigdefault(&actions.attributes, &all);
  posix_spawnattr_setflags(&actions.attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::string shell = "sh";
  std::string option = "-c";
  char* const arguments[] = {shell.data(), option.data(), command.data(), nullptr};
  pid_t pid = 0;
  const int error = posix_spawn(&pid, "/bin/sh", &actions.files, &actions.attributes, arguments, environ);
  if (error != 0) throw cannot_start(command, error);
  return pid;
}

std::string end_text(int status) {
  return WIFSIGNALED(status) ? fmt::format("was ended by signal {}", WTERMSIG(status))
                             : fmt::format("ended with exit code {}", WEXITSTATUS(status));
}

}  // namespace

struct EventCommand::State {
  State(std::function<void(const std::string&)> say, std::size_t most) : on_trouble(std::move(say)), queue(most) {}

  const std::function<void(const std::string&)> on_trouble;
  std::mutex mutex;
  std::condition_variable wake;   ///< the thread
  std::condition_variable ended;  ///< whoever finishes
  OutputQueue queue;
  std::uint64_t dropped = 0;
  bool finishing = false;
  bool abandoned = false;  ///< nobody waits any longer
  bool gone = false;       ///< the command reads no more
  bool over = false;       ///< the thread has nothing left to do
  Descriptor input;
  pid_t pid = 0;

  void run();
  bool write_some(std::unique_lock<std::mutex>& lock);
  bool reaped(milliseconds patience, int& status) const;
};

/// Whether the command has ended within that time.
bool EventCommand::State::reaped(milliseconds patience, int& status) const {
  for (const auto end = Clock::now() + patience;;) {
    const pid_t found = waitpid(pid, &status, WNOHANG);
    if (found == pid || (found < 0 && errno == ECHILD)) return true;
    if (Clock::now() >= end) return false;
    std::this_thread::sleep_for(kCommandPoll);
  }
}

/// Returns false once the command reads no more.
bool EventCommand::State::write_some(std::unique_lock<std::mutex>& lock) {
  const std::string bytes = queue.front(kBytesAtOnce);
  lock.unlock();
  pollfd room{.fd = input.get(), .events = POLLOUT, .revents = 0};
  poll(&room, 1, static_cast<int>(kCommandPoll.count()));
  const ssize_t count = ::write(input.get(), bytes.data(), bytes.size());
  const int error = errno;
  lock.lock();
  if (count > 0) queue.pop(static_cast<std::size_t>(count));
  return count >= 0 || error == EAGAIN || error == EINTR;
}

void EventCommand::State::run() {
  std::unique_lock lock(mutex);
  for (;;) {
    wake.wait(lock, [this] { return !queue.empty() || finishing; });
    if (abandoned || (queue.empty() && finishing)) break;
    if (write_some(lock)) continue;
    gone = true;
    lock.unlock();
    int status = 0;
    const std::string how = reaped(kEndOfDying, status) ? end_text(status) : "reads its input no longer";
    on_trouble("the command of --on-event " + how + "; training goes on, and it is told no more");
    lock.lock();
    over = true;
    ended.notify_all();
    return;
  }
  input.reset();
  while (!abandoned) {
    int status = 0;
    lock.unlock();
    const bool is_over = reaped(milliseconds(0), status);
    if (is_over && status != 0) on_trouble("the command of --on-event " + end_text(status));
    if (!is_over) std::this_thread::sleep_for(kCommandPoll);
    lock.lock();
    if (is_over) break;
  }
  over = true;
  ended.notify_all();
}

EventCommand::EventCommand(const std::string& command, std::function<void(const std::string&)> on_trouble,
                           std::size_t most_bytes)
    : state_(std::make_shared<State>(std::move(on_trouble), most_bytes)) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw cannot_start(command, errno);
  const Descriptor output(ends[0]);
  state_->input = Descriptor(ends[1]);
  // Of this end alone: the other one is the command's, which may not expect it.
  fcntl(ends[1], F_SETFL, O_NONBLOCK);
  state_->pid = start(command, output.get());
  {
    // A write to a command that is gone gives an error there, and no signal.
    const BlockedSignals for_the_thread;
    thread_ = std::thread([state = state_] { state->run(); });
  }
  pthread_setname_np(thread_.native_handle(), "on-event");
}

EventCommand::~EventCommand() { finish(milliseconds(0)); }

void EventCommand::write(std::string line) {
  bool first = false;
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->gone) return;
    if (state_->queue.has_room(line.size())) {
      state_->queue.push(std::move(line));
      state_->wake.notify_all();
      return;
    }
    first = state_->dropped++ == 0;
  }
  if (first) {
    state_->on_trouble("the command of --on-event reads too slowly: lines are dropped from here on; training goes on");
  }
}

void EventCommand::finish(milliseconds patience) {
  if (!thread_.joinable()) return;
  std::unique_lock lock(state_->mutex);
  state_->finishing = true;
  state_->wake.notify_all();
  const bool over = state_->ended.wait_for(lock, patience, [this] { return state_->over; });
  state_->abandoned = !over;
  const std::uint64_t unread = state_->dropped + (state_->gone ? 0 : state_->queue.pieces());
  lock.unlock();
  if (unread > 0) state_->on_trouble(fmt::format("the command of --on-event has not got {} lines", unread));
  if (!over) state_->on_trouble("the command of --on-event goes on; it is left to itself");
  // An abandoned thread ends within a poll.
  thread_.join();
}

}  // namespace lockstep::train
