// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "tests/faults/shim/plan.h"

namespace lockstep::faults {

/// What is known of a call after it was made, for whoever builds the disk's content from it.
struct Outcome {
  long result = 0;        ///< as returned; negative: -errno
  int flags = 0;          ///< of an open
  long offset = 0;        ///< where a write began, what a file was cut to
  std::string other;      ///< where a rename leads, below the watched folder
  std::string_view data;  ///< that was written
};

/// The file that LOCKSTEP_FAULTS_JOURNAL names, of one line a call: role, operation, number, path, fault, result,
/// flags, offset, other path, data in hexadecimal digits, separated by tabs. Processes append to it at once.
class Journal {
 public:
  Journal();

  bool is_kept() const { return file_ >= 0; }
  /// A line a call. One that kills is written before it does.
  void add(const std::string& role, const Call& call, const std::string& fault, const Outcome& outcome) const;
  /// What a process says on its stdout, as operation "say".
  bool is_stdout(int descriptor) const;

 private:
  int file_ = -1;
  dev_t device_ = 0;  ///< of stdout at the start
  ino_t inode_ = 0;
};

}  // namespace lockstep::faults
