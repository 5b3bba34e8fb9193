// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <thread>

namespace lockstep::train {

/// A command of the user's that reads lines on its stdin while a run goes on, such as an uploader to an experiment
/// tracker. A thread of its own writes to it: the run never waits for it, whatever it does, and goes on when it ends.
class EventCommand {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{8} << 20;

  /// Starts `command` by /bin/sh, in a process group of its own, so that Ctrl-C reaches the run alone. Its stdout is
  /// this process's stderr. `on_trouble` is told once where it ends before its time, and once where lines are dropped;
  /// by any thread. Throws EnvironmentError where it cannot be started.
  EventCommand(const std::string& command, std::function<void(const std::string&)> on_trouble,
               std::size_t most_bytes = kMostBytes);
  /// finish() without patience.
  ~EventCommand();
  EventCommand(const EventCommand&) = delete;
  EventCommand& operator=(const EventCommand&) = delete;

  /// Hands over a line with its end. Never waits. A line for which there is no room is dropped: up to `most_bytes`
  /// wait.
  void write(std::string line);
  /// Ends its stdin once all lines are read, and waits for the end of the command, at most for so long in all. Tells of
  /// lines that it has not read. A command that goes on is left to itself.
  void finish(std::chrono::milliseconds patience);

 private:
  struct State;

  std::shared_ptr<State> state_;  ///< the thread's, too
  std::thread thread_;
};

}  // namespace lockstep::train
