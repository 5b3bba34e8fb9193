// SPDX-License-Identifier: Apache-2.0
#include "runtime/job/data_note.h"

#include <algorithm>

namespace lockstep::job {

std::string data_note(std::string_view text) {
  std::string note;
  while (text.starts_with('#')) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    line.remove_prefix(1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    const bool begins = note.empty() && line.starts_with(" Data: ");
    if (!begins && (note.empty() || line.empty() || line.starts_with("  "))) {
      if (note.empty()) continue;
      break;
    }
    note += begins ? line.substr(1) : line;
  }
  return note;
}

}  // namespace lockstep::job
