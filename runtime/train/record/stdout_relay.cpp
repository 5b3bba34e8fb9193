// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record/stdout_relay.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <new>
#include <string_view>
#include <system_error>
#include <utility>

#include "runtime/base/blocked_signals.h"
#include "runtime/base/descriptor.h"
#include "runtime/base/error.h"
#include "runtime/base/prompt_write.h"
#include "runtime/train/record/output_queue.h"

namespace lockstep::train {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds kRelayLastWords{2000};
constexpr milliseconds kRelayMoment{100};
/// Between attempts to write where the disk is full or fails.
constexpr milliseconds kRetry{200};
/// Where a terminal that poll() calls ready has no room for a line's end.
constexpr milliseconds kNoRoom{5};
/// How long the thread may take to end.
constexpr milliseconds kEndTime{1000};

}  // namespace

/// The state that the thread works on.
struct StdoutRelay::State {
  Descriptor original;  ///< what stdout was
  Descriptor reopened;  ///< the same, non-blocking; none where it does not open anew
  Descriptor intake;    ///< the pipe's reading end
  Descriptor wake;
  std::mutex mutex;
  std::condition_variable end;
  OutputQueue queue{kMostBytes};
  bool within_line = false;  ///< the end of the queue is no line's end
  bool dropping = false;     ///< until the end of a line
  std::uint64_t dropped = 0;
  int error = 0;          ///< of the last attempt to write
  bool given_up = false;  ///< nobody will read any more
  bool stalled = false;   ///< nothing was taken since settle() waited in vain
  Clock::time_point next_try{};
  bool ending = false;
  bool ended = false;

  int target() const { return reopened ? reopened.get() : original.get(); }
  void run();
  bool look();
  void take(std::string_view text);
  void pass();
  void note_failure(int number);
  bool drain(milliseconds patience);
  void settle();
};

void StdoutRelay::State::run() {
  while (look()) {
  }
  const std::lock_guard lock(mutex);
  ended = true;
  end.notify_all();
}

/// Waits for what is to be read or can be written. Returns false at the end.
bool StdoutRelay::State::look() {
  bool has_text = false;
  int patience = -1;
  {
    const std::lock_guard lock(mutex);
    if (ending) return false;
    has_text = !queue.empty() && !given_up;
    const auto pause = std::chrono::ceil<milliseconds>(next_try - Clock::now());
    if (has_text && pause > milliseconds::zero()) {
      has_text = false;
      patience = static_cast<int>(pause.count());
    }
  }
  std::array<pollfd, 3> watched{pollfd{intake.get(), POLLIN, 0}, pollfd{wake.get(), POLLIN, 0},
                                pollfd{has_text ? target() : -1, POLLOUT, 0}};
  poll(watched.data(), watched.size(), patience);
  if (watched[0].revents != 0) {
    std::array<char, 65536> buffer;
    const std::lock_guard lock(mutex);
    const ssize_t count = read(intake.get(), buffer.data(), buffer.size());
    if (count > 0) take({buffer.data(), static_cast<std::size_t>(count)});
  }
  if (watched[2].revents != 0) pass();
  return true;
}

void StdoutRelay::State::take(std::string_view text) {
  while (!text.empty()) {
    const std::size_t line = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string_view piece = text.substr(0, line);
    const bool ends = piece.ends_with('\n');
    text.remove_prefix(line);
    // The rest of a line whose start is kept is kept as well.
    if (!within_line && (given_up || !queue.has_room(piece.size()))) dropping = true;
    if (dropping) {
      dropped += ends ? 1 : 0;
      dropping = !ends;
      continue;
    }
    try {
      queue.push(std::string(piece));
      within_line = !ends;
    } catch (const std::bad_alloc&) {
      // As where there is no room: thrown out of this thread, it would end the process with the mutex held.
      error = ENOMEM;
      dropped += ends ? 1 : 0;
      dropping = !ends;
    }
  }
}

void StdoutRelay::State::pass() {
  std::string bytes;
  try {
    const std::lock_guard lock(mutex);
    bytes = queue.front(PIPE_BUF);
  } catch (const std::bad_alloc&) {
    const std::lock_guard lock(mutex);
    return note_failure(ENOMEM);
  }
  const ssize_t written = write_promptly(target(), bytes);
  const int number = errno;
  const std::lock_guard lock(mutex);
  if (written < 0) return note_failure(number);
  error = 0;
  stalled = false;
  queue.pop(static_cast<std::size_t>(written));
}

void StdoutRelay::State::note_failure(int number) {
  const bool no_room = number == EINTR || number == EAGAIN;
  next_try = Clock::now() + (no_room ? kNoRoom : kRetry);
  if (no_room) return;
  error = number;
  given_up = number == EPIPE || number == EBADF;
}

/// Waits until all that was printed is passed on or given up. Returns whether it was.
bool StdoutRelay::State::drain(milliseconds patience) {
  for (const auto latest = Clock::now() + patience; Clock::now() < latest;) {
    {
      const std::lock_guard lock(mutex);
      int waiting = 0;
      ioctl(intake.get(), FIONREAD, &waiting);
      if (waiting == 0 && (queue.empty() || given_up)) return true;
    }
    std::this_thread::sleep_for(milliseconds(1));
  }
  return false;
}

/// A thousand warnings must not wait a moment each.
void StdoutRelay::State::settle() {
  {
    const std::lock_guard lock(mutex);
    if (stalled) return;
  }
  if (drain(kRelayMoment)) return;
  const std::lock_guard lock(mutex);
  stalled = true;
}

std::mutex StdoutRelay::current_mutex_;
std::shared_ptr<StdoutRelay::State> StdoutRelay::current_;

std::shared_ptr<StdoutRelay::State> StdoutRelay::current() {
  const std::lock_guard lock(current_mutex_);
  return current_;
}

void StdoutRelay::set_current(std::shared_ptr<State> state) {
  const std::lock_guard lock(current_mutex_);
  current_ = std::move(state);
}

StdoutRelay::StdoutRelay(OnLoss on_loss) : on_loss_(std::move(on_loss)), state_(std::make_shared<State>()) {
  std::fflush(stdout);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    throw EnvironmentError("cannot make a pipe: " + std::generic_category().message(errno));
  }
  state_->intake.reset(ends[0]);
  const Descriptor entry(ends[1]);
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  state_->wake.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  state_->original.reset(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  if (!state_->original || !state_->wake) {
    throw EnvironmentError("cannot pass stdout on: " + std::generic_category().message(errno));
  }
  state_->reopened = reopen_nonblocking(STDOUT_FILENO);
  {
    const BlockedSignals for_the_thread;
    thread_ = std::thread([state = state_] { state->run(); });
  }
  pthread_setname_np(thread_.native_handle(), "stdout");
  // Not before: the system may refuse the thread, and a pipe that nobody reads must not become stdout.
  dup2(entry.get(), STDOUT_FILENO);
  set_current(state_);
}

StdoutRelay::~StdoutRelay() {
  std::fflush(stdout);
  state_->drain(kRelayLastWords);
  set_current(nullptr);
  end_thread();
  dup2(state_->original.get(), STDOUT_FILENO);
  tell_of_loss();
}

void StdoutRelay::end_thread() {
  bool ended = false;
  {
    std::unique_lock lock(state_->mutex);
    state_->ending = true;
    eventfd_write(state_->wake.get(), 1);
    ended = state_->end.wait_for(lock, kEndTime, [this] { return state_->ended; });
  }
  ended ? thread_.join() : thread_.detach();
}

void StdoutRelay::tell_of_loss() const {
  std::string loss;
  {
    const std::lock_guard lock(state_->mutex);
    const std::string left = state_->queue.front(std::string::npos);
    const std::uint64_t dropped = state_->dropped + static_cast<std::uint64_t>(std::ranges::count(left, '\n'));
    if (dropped == 0 || state_->error == EPIPE) return;
    const std::string why = state_->error == 0 ? "nobody read them" : std::generic_category().message(state_->error);
    loss = fmt::format("{} lines of output were dropped: {}", dropped, why);
  }
  pollfd stream{STDERR_FILENO, POLLOUT, 0};
  if (poll(&stream, 1, 0) > 0) on_loss_(loss);
}

int StdoutRelay::descriptor() {
  const std::shared_ptr<State> state = current();
  return state == nullptr ? STDOUT_FILENO : state->original.get();
}

void StdoutRelay::settle() {
  const std::shared_ptr<State> state = current();
  if (state == nullptr) return;
  std::fflush(stdout);
  state->settle();
}

}  // namespace lockstep::train
