// SPDX-License-Identifier: Apache-2.0
#include "comm/group/same_text.h"

#include "runtime/base/error.h"

namespace lockstep::comm {

namespace {

std::string line_at(const std::string& text, std::size_t at) { return text.substr(at, text.find('\n', at) - at); }

std::string has_at(const std::string& text, std::size_t at) {
  return " has " + (at < text.size() ? line_at(text, at) : "no more");
}

}  // namespace

void require_same_text(Communicator& communicator, const std::string& lines, const std::string& what,
                       const std::string& advice) {
  const std::vector<std::string> all = communicator.all_gather_text(lines);
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    std::size_t start = 0;
    while (line_at(all[0], start) == line_at(all[rank], start)) start = all[0].find('\n', start) + 1;
    throw PeerError(
        what + ": rank 0" + has_at(all[0], start) + ", rank " + std::to_string(rank) + has_at(all[rank], start),
        advice);
  }
}

}  // namespace lockstep::comm
