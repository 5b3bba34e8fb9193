// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervisor/mpirun_messages.h"

#include <cstdio>
#include <utility>

#include "launcher/supervisor/start_failure.h"
#include "runtime/base/printable.h"

namespace lockstep::launcher {

namespace {

constexpr std::size_t kDashes = 74;
/// The most bytes of a line or a remark that are kept until it ends: mpirun's own are shorter.
constexpr std::size_t kMostKept = std::size_t{64} << 10;

/// One line of dashes opens or closes a remark; where one remark follows another, two stand in one line.
std::size_t separators(const std::string& line) {
  const bool dashes = !line.empty() && line.find_first_not_of('-') == std::string::npos;
  return dashes && line.size() % kDashes == 0 ? line.size() / kDashes : 0;
}

/// Lines of mpirun outside its remarks, of interest to nobody.
bool is_chatter(const std::string& line) {
  return line.starts_with("mpirun: Forwarding signal") || line.starts_with("PRTE: Forwarding signal") ||
         line.starts_with("mpirun: killing job") || line.find("] ORTE_ERROR_LOG: ") != std::string::npos ||
         line.find("PRTE ERROR: ") != std::string::npos || line.find("PMIX ERROR: ") != std::string::npos ||
         line.find("base_help_aggregate") != std::string::npos || line.find(" sent help message ") != std::string::npos;
}

/// Stands behind every rank that ended badly, whatever ended it.
bool says_nothing(const std::string& remark) {
  return remark.starts_with("Primary job  terminated normally, but ") ||
         remark.find(" detected that one or more processes exited with non-zero status") != std::string::npos;
}

}  // namespace

std::string MpirunMessages::feed(std::string_view text) {
  std::string passed;
  for (const char character : text) {
    if (character == '\n') {
      passed += take_line(std::exchange(line_, {}));
      continue;
    }
    line_ += character;
    if (line_.size() >= kMostKept) {
      passed += line_;
      line_.clear();
      within_long_line_ = true;
    }
  }
  return passed;
}

std::string MpirunMessages::finish() {
  const std::string last = line_.empty() && !within_long_line_ ? "" : take_line(printable(std::exchange(line_, {})));
  in_remark_ = false;
  note_signal(open_remark_);
  return std::exchange(open_remark_, {}) + last;
}

std::string MpirunMessages::release() {
  starting_ = false;
  return std::exchange(held_, {});
}

std::string MpirunMessages::take_line(const std::string& line) {
  if (std::exchange(within_long_line_, false)) return line + "\n";
  if (const std::size_t count = separators(line); count > 0) {
    for (std::size_t i = 0; i < count; ++i) {
      in_remark_ = !in_remark_;
      const std::string remark = std::exchange(open_remark_, {});
      note_signal(remark);
      if (!says_nothing(remark)) remarks_ += remark;
    }
    return {};
  }
  if (in_remark_) {
    open_remark_ += line + "\n";
    if (open_remark_.size() < kMostKept) return {};
    in_remark_ = false;
    return std::exchange(open_remark_, {});
  }
  if (is_chatter(line)) return {};
  const std::string text = valid_utf8(line);
  if (!starting_ || !is_of_a_daemons_start(line)) return text + "\n";
  held_ += text.substr(0, text.find_last_not_of('\r') + 1) + "\n";
  return {};
}

void MpirunMessages::note_signal(const std::string& remark) {
  int rank = 0;
  int signal = 0;
  // The first word is mpirun's name of itself. Version 5 breaks the line, which a space of the format matches too.
  const char* format = "%*s noticed that process rank %d with PID %*d on node %*s exited on signal %d";
  if (std::sscanf(remark.c_str(), format, &rank, &signal) == 2) signals_.emplace(rank, signal);
}

}  // namespace lockstep::launcher
