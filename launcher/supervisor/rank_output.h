// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace lockstep::launcher {

/// Passes on what the ranks print on stdout, which a pipe gives in pieces that end anywhere. A live line, such as a bar
/// on a terminal, is shown as it comes. Without one, a line is passed on when it is whole, or longer than 64 KiB: what
/// is printed meanwhile does not come to stand within it, and its bytes that are no UTF-8 are escaped.
class RankOutput {
 public:
  RankOutput(std::FILE* to, bool live) : to_(to), live_(live) {}

  void pass(std::string_view piece);
  /// Before something else is printed: ends the live line.
  void end_live_line();
  /// Before words that answer a key: ends the live line, or clears what a terminal has echoed of the key, "^C", where
  /// none is drawn.
  void make_room_for_answer();
  /// Nothing comes any more: passes on what is left of a line, and ends it.
  void finish();

 private:
  void write(std::string_view text);

  std::FILE* to_;
  bool live_;
  bool line_open_ = false;  ///< what was written last has not ended its line
  std::string held_;        ///< the begin of a line
};

}  // namespace lockstep::launcher
