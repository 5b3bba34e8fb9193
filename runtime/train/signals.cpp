// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/signals.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>

#include "runtime/base/error.h"
#include "runtime/base/prompt_write.h"
#include "runtime/train/record/terminal.h"

namespace lockstep::train {

const char* const kStopNotice = "stopping after this step and saving; Ctrl-C again to end at once\n";

namespace {

constexpr std::array kSignals{SIGTERM, SIGINT, SIGHUP, SIGUSR1};
constexpr const char* kBriefNotice = "stopping after this step and saving\n";

std::atomic<bool> stop_requested{false};
std::atomic<int> interrupts{0};
std::atomic<int> notice_descriptor{-1};
std::atomic<bool> ends_on_second{false};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);
std::array<struct sigaction, kSignals.size()> previous;

void request_stop(int number) {
  const int error = errno;
  const bool first = !stop_requested.exchange(true);
  if (number == SIGINT && interrupts.fetch_add(1) > 0 && ends_on_second) {
    end_live_line();
    _exit(static_cast<int>(ExitCode::kPreempted));
  }
  if (first && notice_descriptor >= 0) {
    end_live_line();
    const char* const text = ends_on_second ? kStopNotice : kBriefNotice;
    [[maybe_unused]] const ssize_t written = write_promptly(notice_descriptor, text);
  }
  errno = error;
}

}  // namespace

StopSignals::StopSignals(const StopNotice& notice) : words_(reopen_nonblocking(notice.descriptor)) {
  stop_requested.store(false);
  interrupts.store(0);
  notice_descriptor.store(words_ ? words_.get() : notice.descriptor);
  ends_on_second.store(notice.ends_on_second);
  struct sigaction action {};
  action.sa_handler = request_stop;
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], &action, &previous[i]);
    // nohup's wish holds.
    if (kSignals[i] == SIGHUP && previous[i].sa_handler == SIG_IGN) sigaction(SIGHUP, &previous[i], nullptr);
  }
}

StopSignals::~StopSignals() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &previous[i], nullptr);
  notice_descriptor.store(-1);
}

bool StopSignals::requested() const { return stop_requested.load(); }

}  // namespace lockstep::train
