// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "runtime/train/record/status_board.h"

namespace lockstep::train {

/// Where a run's words to a person go: lines and, on a terminal, below them one live line that is drawn again and
/// again. One at a time.
class Terminal {
 public:
  /// Whether the stream shows a live line. Our launcher, which sees the real terminal, says so in LOCKSTEP_PROGRESS
  /// ("bar" or "lines"); else it must be a terminal that can move its cursor, and not one that mpirun made up.
  static bool shows_live_line(std::FILE* stream);

  explicit Terminal(std::FILE* stream, bool live);
  /// Ends the live line.
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  bool live() const { return live_; }
  /// The width now: that of the real terminal, which our launcher hands on; 80 where nobody knows.
  int columns() const;

  /// Text of whole lines, without the end of the last one. Takes the live line's place, which moves below.
  void print(const std::string& text);
  /// Draws the live line. It must be shorter than columns().
  void draw(const std::string& text);

 private:
  std::FILE* stream_;
  bool live_;
  StatusBoard board_;
  std::string drawn_;
};

/// The text that ends a live line: it moves below, and clears the rows that the line takes in a smaller window.
extern const char* const kEndOfLiveLine;

/// Writes text to stdout, which a StdoutRelay passes on, or by write_stderr().
void put(std::FILE* stream, std::string_view text);

/// Whether text for this stream may be coloured: it shows a live line, and NO_COLOR is not set.
bool shows_color(std::FILE* stream);

/// Ends the live line where one is drawn, so that what follows, on stderr too, stands on a line of its own. For whoever
/// prints beside the Terminal; async-signal-safe.
void end_live_line();

/// The width of the terminal behind `descriptor`; 0 where it is none or does not say.
int terminal_columns(int descriptor);

}  // namespace lockstep::train
