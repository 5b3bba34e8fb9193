// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervisor/rank_output.h"

#include <algorithm>
#include <utility>

#include "runtime/base/printable.h"
#include "runtime/train/record/terminal.h"

namespace lockstep::launcher {

namespace {

/// The most bytes of a line that are kept until it ends.
constexpr std::size_t kMostOfALine = std::size_t{64} << 10;

/// Where a text may be cut: before the last character of several bytes, whose end may be still to come.
std::size_t cut_of(std::string_view text) {
  std::size_t at = text.size();
  const std::size_t least = at - std::min<std::size_t>(at, 3);
  while (at > least && (static_cast<unsigned char>(text[at - 1]) & 0xc0) == 0x80) --at;
  return at > 0 && static_cast<unsigned char>(text[at - 1]) >= 0xc0 ? at - 1 : text.size();
}

}  // namespace

void RankOutput::write(std::string_view text) {
  if (text.empty()) return;
  std::fwrite(text.data(), 1, text.size(), to_);
  std::fflush(to_);
  line_open_ = text.back() != '\n';
}

void RankOutput::pass(std::string_view piece) {
  if (live_) return write(piece);
  held_ += piece;
  std::size_t whole = held_.rfind('\n') + 1;  // 0 where there is none
  if (held_.size() - whole >= kMostOfALine) whole = cut_of(held_);
  // Once in some thousand starts through Open MPI a few odd bytes stand behind the last line.
  write(valid_utf8(std::string_view(held_).substr(0, whole)));
  held_.erase(0, whole);
}

void RankOutput::end_live_line() {
  if (!line_open_) return;
  write(live_ ? train::kEndOfLiveLine : "\n");
  line_open_ = false;
}

void RankOutput::make_room_for_answer() {
  if (line_open_) return end_live_line();
  if (live_) write("\r\033[J");
  line_open_ = false;
}

void RankOutput::finish() {
  write(printable(std::exchange(held_, {})));
  end_live_line();
}

}  // namespace lockstep::launcher
