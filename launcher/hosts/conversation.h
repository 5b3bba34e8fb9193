// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/descriptor.h"

namespace lockstep::launcher {

/// A child process that answers JSON objects, a line each, on its stdin and stdout. It should end at the end of its
/// stdin; the destructor kills one that goes on.
class Conversation {
 public:
  using Json = nlohmann::ordered_json;
  using Clock = std::chrono::steady_clock;

  /// `command`: the program, found in PATH, and its arguments. Throws EnvironmentError where it cannot be started.
  explicit Conversation(const std::vector<std::string>& command);
  ~Conversation();
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  void say(const Json& words);
  /// The next object; none where the process ends or says none until `end`. What is no object is passed by.
  std::optional<Json> hear(Clock::time_point end);
  /// say(), then hear().
  std::optional<Json> ask(const Json& words, Clock::time_point end);

  /// Its exit code as a shell gives it, once it has ended; waits until `end`.
  std::optional<int> exit_code(Clock::time_point end);
  /// What it has printed on stderr, in one line; of much, the end.
  std::string complaint();

 private:
  /// Reads what has come; false at the end of its stdout.
  bool read_more(Clock::time_point end);

  pid_t pid_ = -1;
  std::optional<int> status_;
  Descriptor to_;
  Descriptor from_;
  Descriptor errors_;
  std::string heard_;
  std::string complaints_;
};

}  // namespace lockstep::launcher
