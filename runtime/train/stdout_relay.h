// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "runtime/base/descriptor.h"
#include "runtime/train/output_queue.h"

namespace lockstep::train {

/// While it lives, stdout is a pipe that a thread of its own reads and passes on, so that printing never waits for who
/// reads: a stopped terminal, a log collector that hangs, a full disk. What the reader does not take is kept, up to
/// kMostBytes; lines beyond that are dropped and counted. At most one at a time.
class StdoutRelay {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{8} << 20;

  /// Called at the end where lines were dropped, with a sentence, unless stderr is not read either.
  using OnLoss = std::function<void(const std::string&)>;

  explicit StdoutRelay(OnLoss on_loss);
  /// Gives up what is not taken within two seconds.
  ~StdoutRelay();
  StdoutRelay(const StdoutRelay&) = delete;
  StdoutRelay& operator=(const StdoutRelay&) = delete;

  /// Where stdout leads in the end.
  static int descriptor();
  /// Waits until all that was printed is passed on, so that stderr comes behind it; a moment at most.
  static void settle();

 private:
  void work();
  void take(std::string_view text);
  void pass();
  bool drain(std::chrono::milliseconds patience);

  OnLoss on_loss_;
  Descriptor target_;  ///< what stdout was
  Descriptor intake_;  ///< the pipe's reading end
  Descriptor wake_;
  std::mutex mutex_;
  OutputQueue queue_{kMostBytes};
  bool within_line_ = false;  ///< the end of the queue is no line's end
  bool dropping_ = false;     ///< until the end of a line
  std::uint64_t dropped_ = 0;
  int error_ = 0;          ///< of the last attempt to write
  bool given_up_ = false;  ///< nobody will read any more
  std::chrono::steady_clock::time_point next_try_{};
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace lockstep::train
