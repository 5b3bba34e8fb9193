// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "launcher/hosts/conversation.h"

namespace lockstep::launcher {

/// A host in an examination, and the program that answers there.
class ExaminedHost {
 public:
  using Json = Conversation::Json;

  explicit ExaminedHost(std::string name) : name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  bool answers() const { return !facts_.is_null(); }
  /// answers.h has them; null where the host does not answer.
  const Json& facts() const { return facts_; }
  /// Why it does not answer, and what to do: {"missing", "consequence", "advice"}.
  const Json& failure() const { return failure_; }
  double clock_ms() const { return clock_ms_; }
  double clock_error_ms() const { return clock_error_ms_; }

  /// Starts the program there and hears the facts, 8 s at most.
  void greet();
  /// Compares its clock with this host's, by the quickest of several answers.
  void compare_clocks();
  /// What it says is no answer.
  void give_up(const std::string& why);
  /// Asks it; null, and from then on it does not answer, where none comes in time.
  Json ask(const Json& words);

 private:
  void explain(const std::string& program);
  void lose(const std::string& missing, const std::string& advice);

  std::string name_;
  std::unique_ptr<Conversation> conversation_;
  Json facts_;
  Json failure_;
  double clock_ms_ = 0;
  double clock_error_ms_ = 0;
};

}  // namespace lockstep::launcher
