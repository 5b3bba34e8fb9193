// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/stdout_relay.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <system_error>
#include <utility>

#include "runtime/tensor/error.h"

namespace lockstep::train {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kLastWords{2000};
constexpr milliseconds kMoment{100};
/// Between attempts to write where the disk is full or fails.
constexpr milliseconds kRetry{200};

std::atomic<StdoutRelay*> current{nullptr};

bool is_ready(int descriptor, short events) {
  pollfd watched{descriptor, events, 0};
  return poll(&watched, 1, 0) > 0;
}

}  // namespace

StdoutRelay::StdoutRelay(OnLoss on_loss) : on_loss_(std::move(on_loss)) {
  std::fflush(stdout);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    throw EnvironmentError("cannot make a pipe: " + std::generic_category().message(errno));
  }
  intake_.reset(ends[0]);
  const Descriptor entry(ends[1]);
  fcntl(intake_.get(), F_SETFL, O_NONBLOCK);
  wake_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  target_.reset(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  if (!target_ || !wake_) {
    throw EnvironmentError("cannot pass stdout on: " + std::generic_category().message(errno));
  }
  dup2(entry.get(), STDOUT_FILENO);
  current = this;
  // Signals are for the threads that listen to them.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { work(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(thread_.native_handle(), "stdout");
}

StdoutRelay::~StdoutRelay() {
  std::fflush(stdout);
  drain(kLastWords);
  current = nullptr;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  eventfd_write(wake_.get(), 1);
  thread_.join();
  dup2(target_.get(), STDOUT_FILENO);
  dropped_ += static_cast<std::uint64_t>(std::ranges::count(queue_.front(std::string::npos), '\n'));
  if (dropped_ == 0 || error_ == EPIPE || !is_ready(STDERR_FILENO, POLLOUT)) return;
  const std::string why = error_ == 0 ? "nobody read them" : std::generic_category().message(error_);
  on_loss_(fmt::format("{} lines of output were dropped: {}", dropped_, why));
}

int StdoutRelay::descriptor() {
  const StdoutRelay* const relay = current;
  return relay == nullptr ? STDOUT_FILENO : relay->target_.get();
}

void StdoutRelay::settle() {
  StdoutRelay* const relay = current;
  if (relay == nullptr) return;
  std::fflush(stdout);
  relay->drain(kMoment);
}

void StdoutRelay::work() {
  for (;;) {
    bool has_text = false;
    int patience = -1;
    {
      const std::lock_guard lock(mutex_);
      if (ending_) return;
      has_text = !queue_.empty() && !given_up_;
      if (has_text && Clock::now() < next_try_) {
        has_text = false;
        patience = static_cast<int>(kRetry.count());
      }
    }
    std::array<pollfd, 3> watched{pollfd{intake_.get(), POLLIN, 0}, pollfd{wake_.get(), POLLIN, 0},
                                  pollfd{has_text ? target_.get() : -1, POLLOUT, 0}};
    poll(watched.data(), watched.size(), patience);
    if (watched[0].revents != 0) {
      std::array<char, 65536> buffer;
      const std::lock_guard lock(mutex_);
      const ssize_t count = read(intake_.get(), buffer.data(), buffer.size());
      if (count > 0) take({buffer.data(), static_cast<std::size_t>(count)});
    }
    if (watched[2].revents != 0) pass();
  }
}

void StdoutRelay::take(std::string_view text) {
  while (!text.empty()) {
    const std::size_t line = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string_view piece = text.substr(0, line);
    const bool ends = piece.ends_with('\n');
    text.remove_prefix(line);
    // The rest of a line whose start is kept is kept as well.
    if (!within_line_ && (given_up_ || !queue_.has_room(piece.size()))) dropping_ = true;
    if (dropping_) {
      dropped_ += ends ? 1 : 0;
      dropping_ = !ends;
      continue;
    }
    queue_.push(std::string(piece));
    within_line_ = !ends;
  }
}

void StdoutRelay::pass() {
  std::string bytes;
  {
    const std::lock_guard lock(mutex_);
    // So much a pipe takes without waiting where poll() calls it ready.
    bytes = queue_.front(PIPE_BUF);
  }
  const ssize_t written = write(target_.get(), bytes.data(), bytes.size());
  const std::lock_guard lock(mutex_);
  if (written < 0) {
    if (errno == EINTR || errno == EAGAIN) return;
    error_ = errno;
    given_up_ = error_ == EPIPE || error_ == EBADF;
    next_try_ = Clock::now() + kRetry;
    return;
  }
  error_ = 0;
  queue_.pop(static_cast<std::size_t>(written));
}

bool StdoutRelay::drain(milliseconds patience) {
  const auto end = Clock::now() + patience;
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      int waiting = 0;
      ioctl(intake_.get(), FIONREAD, &waiting);
      if (waiting == 0 && (queue_.empty() || given_up_)) return true;
    }
    if (Clock::now() >= end) return false;
    std::this_thread::sleep_for(milliseconds(1));
  }
}

}  // namespace lockstep::train
