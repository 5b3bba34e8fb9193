// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record/write_stderr.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <thread>

#include "runtime/base/descriptor.h"
#include "runtime/base/prompt_write.h"

namespace lockstep::train {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kMoment{100};
constexpr milliseconds kLastWords{1000};
constexpr milliseconds kPause{1};

// These belong to the process, as stderr does.
std::mutex mutex;           ///< one text after another
std::uint64_t dropped = 0;  ///< lines, since stderr last took some
bool within_line = false;   ///< what stderr took last is no line's end

/// Returns what is not taken in time.
std::string_view pass(int descriptor, std::string_view text, Clock::time_point latest) {
  while (!text.empty()) {
    const ssize_t count = write_promptly(descriptor, text);
    if (count > 0) {
      within_line = text[static_cast<std::size_t>(count) - 1] != '\n';
      text.remove_prefix(static_cast<std::size_t>(count));
      continue;
    }
    const bool may_pass = count == 0 || errno == EAGAIN || errno == EINTR;
    if (!may_pass || Clock::now() >= latest) break;
    std::this_thread::sleep_for(kPause);
  }
  return text;
}

/// Says what was dropped before. Returns whether stderr takes text again.
bool tell_of_loss(int descriptor, Clock::time_point latest) {
  if (dropped == 0) return true;
  std::array<char, 80> text;
  const auto end = fmt::format_to_n(text.data(), text.size(), "{}lockstep: {} lines were dropped: nobody read stderr\n",
                                    within_line ? "\n" : "", dropped);
  if (!pass(descriptor, {text.data(), std::min(end.size, text.size())}, latest).empty()) return false;
  dropped = 0;
  return true;
}

void drop(std::string_view text) {
  if (text.empty()) return;
  dropped += std::max(std::uint64_t{1}, static_cast<std::uint64_t>(std::ranges::count(text, '\n')));
}

}  // namespace

void write_stderr(std::string_view text, Words words) noexcept {
  // No memory is allocated: this also tells of the lack of it.
  const std::lock_guard lock(mutex);
  const Descriptor own = reopen_nonblocking(STDERR_FILENO);
  const int descriptor = own ? own.get() : STDERR_FILENO;
  const milliseconds patience = words == Words::kLast ? kLastWords : dropped > 0 ? milliseconds(0) : kMoment;
  const auto latest = Clock::now() + patience;
  drop(tell_of_loss(descriptor, latest) ? pass(descriptor, text, latest) : text);
}

}  // namespace lockstep::train
