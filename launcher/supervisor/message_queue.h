// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "runtime/base/prompt_write.h"
#include "runtime/train/record/output_queue.h"

namespace lockstep::launcher {

/// Lines for a descriptor that nobody may read, such as the stderr of a stopped terminal: whoever prints them does not
/// wait. What is not taken is kept, up to kMostBytes; lines beyond that are dropped and counted.
class MessageQueue {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{1} << 20;

  explicit MessageQueue(int to) : own_(reopen_nonblocking(to)), to_(own_ ? own_.get() : to) {}

  void push(std::string_view lines);
  /// Writes what is taken at once.
  void write();
  /// Whether lines wait to be taken. poll() does not tell when: a terminal may be ready and take nothing.
  bool waits() const { return !queue_.empty(); }
  /// Gives up what is not taken within this time. Returns how many lines were dropped in all.
  std::uint64_t finish(std::chrono::milliseconds patience);

 private:
  void give_up();

  Descriptor own_;  ///< which does not wait; none where the system gives none
  int to_;
  train::OutputQueue queue_{kMostBytes};
  std::uint64_t dropped_ = 0;
};

}  // namespace lockstep::launcher
