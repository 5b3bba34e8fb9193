// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervisor/message_queue.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <string>
#include <thread>

namespace lockstep::launcher {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

namespace {

constexpr milliseconds kPause{5};

}  // namespace

void MessageQueue::push(std::string_view lines) {
  while (!lines.empty()) {
    const std::size_t line = std::min(lines.find('\n'), lines.size() - 1) + 1;
    if (queue_.has_room(line)) {
      queue_.push(std::string(lines.substr(0, line)));
    } else {
      ++dropped_;
    }
    lines.remove_prefix(line);
  }
}

void MessageQueue::write() {
  while (!queue_.empty()) {
    const ssize_t written = write_promptly(to_, queue_.front(PIPE_BUF));
    if (written < 0 && errno != EINTR && errno != EAGAIN) give_up();
    if (written < 0) return;
    queue_.pop(static_cast<std::size_t>(written));
  }
}

std::uint64_t MessageQueue::finish(milliseconds patience) {
  const Clock::time_point end = Clock::now() + patience;
  for (write(); !queue_.empty() && Clock::now() < end; write()) {
    std::this_thread::sleep_for(kPause);
  }
  give_up();
  return dropped_;
}

void MessageQueue::give_up() {
  dropped_ += queue_.pieces();
  queue_ = train::OutputQueue(kMostBytes);
}

}  // namespace lockstep::launcher
