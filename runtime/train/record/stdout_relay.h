// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace lockstep::train {

/// While it lives, stdout is a pipe that a thread of its own reads and passes on, so that printing never waits for who
/// reads: a stopped terminal, a log collector that hangs, a full disk. What the reader does not take is kept, up to
/// kMostBytes; lines beyond that are dropped and counted. At most one at a time.
class StdoutRelay {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{8} << 20;

  /// Called at the end where lines were dropped, with a sentence, unless stderr is not read either.
  using OnLoss = std::function<void(const std::string&)>;

  /// Leaves stdout as it is where the system starts no thread, and throws what std::thread does.
  explicit StdoutRelay(OnLoss on_loss);
  /// Gives up what is not taken within two seconds. Leaves the thread to itself where a system call keeps it.
  ~StdoutRelay();
  StdoutRelay(const StdoutRelay&) = delete;
  StdoutRelay& operator=(const StdoutRelay&) = delete;

  /// Where stdout leads in the end.
  static int descriptor();
  /// Waits until all that was printed is passed on, so that stderr comes behind it; a moment at most, and where
  /// that was in vain, not again until something is taken.
  static void settle();

 private:
  struct State;

  static std::shared_ptr<State> current();
  static void set_current(std::shared_ptr<State> state);

  void end_thread();
  void tell_of_loss() const;

  static std::mutex current_mutex_;
  static std::shared_ptr<State> current_;  ///< of the relay that lives

  OnLoss on_loss_;
  std::shared_ptr<State> state_;  ///< the thread's, too
  std::thread thread_;
};

}  // namespace lockstep::train
