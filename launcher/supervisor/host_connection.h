// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "launcher/supervisor/child_process.h"

namespace lockstep::launcher {

/// An ssh connection to a host, on which nothing runs there: ssh asks the other side for a sign every now and then.
class HostConnection {
 public:
  /// `ssh`: the program. It ends after `seconds` without being let in, or, later, without a sign.
  HostConnection(const std::filesystem::path& ssh, const std::string& host, long seconds);

  /// Hears what has come. Returns whether ssh has ended.
  bool look();
  /// Whether the host has let us in.
  bool is_in() const { return is_in_; }
  /// The last words of ssh, without the end of the line.
  std::string said() const;

 private:
  ChildProcess process_;
  bool is_in_ = false;
  std::string said_;
};

}  // namespace lockstep::launcher
