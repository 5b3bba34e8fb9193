// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace lockstep::train {

/// The lines that come from a descriptor, as many at a time as are there: whoever writes one and waits for its answer
/// gets it.
class InputLines {
 public:
  explicit InputLines(int input) : input_(input) {}

  /// At least one line, and at most 256, without their ends. None at the end. Throws
  /// StorageError where the descriptor cannot be read, and for a line of more than 1 MiB.
  std::vector<std::string> next();

 private:
  void read_more();

  int input_;
  std::string text_;
  bool ended_ = false;
};

}  // namespace lockstep::train
