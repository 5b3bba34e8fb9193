// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string_view>

#include "runtime/base/prompt_write.h"
#include "runtime/train/record/stdout_relay.h"
#include "runtime/train/record/write_stderr.h"

namespace lockstep::train {

const char* const kEndOfLiveLine = "\n\033[J";

namespace {

constexpr int kUnknownColumns = 80;

/// The stream on which a live line is drawn, by its descriptor; -1: none. Of the process, as the terminal is.
std::atomic<int> live_descriptor{-1};
static_assert(std::atomic<int>::is_always_lock_free);

/// Where the stream leads in the end.
int descriptor_of(std::FILE* stream) { return stream == stdout ? StdoutRelay::descriptor() : fileno(stream); }

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool is_dumb() {
  const std::string_view kind = variable("TERM");
  return kind.empty() || kind == "dumb";
}

}  // namespace

bool Terminal::shows_live_line(std::FILE* stream) {
  const std::string_view said = variable("LOCKSTEP_PROGRESS");
  if (!said.empty()) return stream == stdout && said == "bar";
  return variable("OMPI_COMM_WORLD_RANK").empty() && isatty(descriptor_of(stream)) == 1 && !is_dumb();
}

Terminal::Terminal(std::FILE* stream, bool live)
    : stream_(stream), live_(live), board_(StatusBoard::from_environment()) {}

Terminal::~Terminal() { end_live_line(); }

int Terminal::columns() const {
  if (const int told = board_.columns(); told > 0) return told;
  if (const int told = std::atoi(std::string(variable("LOCKSTEP_COLUMNS")).c_str()); told > 0) return told;
  const int found = terminal_columns(descriptor_of(stream_));
  return found > 0 ? found : kUnknownColumns;
}

void Terminal::print(const std::string& text) {
  const bool over = live_descriptor.exchange(-1) >= 0;
  put(stream_, (over ? "\r\033[J" : "") + text + "\n");
  // It stays in sight until the next step draws it anew.
  if (over) draw(drawn_);
}

void Terminal::draw(const std::string& text) {
  drawn_ = text;
  // A window that becomes smaller wraps what is drawn into rows. The cursor, left on the first character, is in the
  // first of them, from where all are drawn over and cleared; a line that comes too late, too long, is cut and not
  // wrapped.
  const std::string line = "\r\033[?7l" + text + "\033[J\033[?7h\r";
  // Before and after: what the handler of a signal prints meanwhile must not stand behind the line, nor hide it.
  live_descriptor = fileno(stream_);
  put(stream_, line);
  live_descriptor = fileno(stream_);
}

void put(std::FILE* stream, std::string_view text) {
  if (stream == stderr) return write_stderr(text);
  std::fwrite(text.data(), 1, text.size(), stream);
  std::fflush(stream);
}

bool shows_color(std::FILE* stream) { return Terminal::shows_live_line(stream) && variable("NO_COLOR").empty(); }

void end_live_line() {
  const int descriptor = live_descriptor.exchange(-1);
  if (descriptor < 0) return;
  [[maybe_unused]] const ssize_t written = write_promptly(descriptor, kEndOfLiveLine);
}

int terminal_columns(int descriptor) {
  winsize size{};
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

}  // namespace lockstep::train
