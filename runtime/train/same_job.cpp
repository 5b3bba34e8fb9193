// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/same_job.h"

#include <fmt/format.h>
#include <lockstep/version.h>

#include <map>
#include <utility>

#include "comm/group/rank_names.h"
#include "runtime/base/error.h"
#include "runtime/job/differences.h"

namespace lockstep::train {

namespace {

std::string encode(const RankIdentity& identity) { return identity.version + "\n" + identity.job.SerializeAsString(); }

RankIdentity decode(const std::string& text, std::size_t rank) {
  const std::size_t end = text.find('\n');
  RankIdentity identity{text.substr(0, end), {}};
  if (end == std::string::npos || !identity.job.ParseFromString(text.substr(end + 1))) {
    throw PeerError(fmt::format("what rank {} says of its job cannot be read", rank),
                    "Start every rank with the same program.");
  }
  return identity;
}

}  // namespace

std::vector<std::string> disagreements(const std::vector<RankIdentity>& ranks) {
  // Many ranks may differ from rank 0 in one way: one line says it.
  std::map<std::string, std::vector<int>> differing;
  for (std::size_t r = 1; r < ranks.size(); ++r) {
    const auto note = [&](const std::string& line) { differing[line].push_back(static_cast<int>(r)); };
    if (ranks[r].version != ranks[0].version) note(fmt::format("version: {} / {}", ranks[0].version, ranks[r].version));
    for (const job::Difference& difference : job::differences(ranks[0].job, ranks[r].job)) {
      note(fmt::format("{}: {} / {}", difference.path, difference.before, difference.after));
    }
  }
  std::vector<std::string> lines;
  for (const auto& [line, who] : differing)
    lines.push_back(fmt::format("{} (rank 0 / {})", line, comm::rank_names(who)));
  return lines;
}

void require_same_job(comm::Communicator& communicator, const job::Job& job) {
  std::vector<RankIdentity> ranks;
  for (const std::string& text : communicator.all_gather_text(encode({kVersion, job}))) {
    ranks.push_back(decode(text, ranks.size()));
  }
  const std::vector<std::string> lines = disagreements(ranks);
  if (lines.empty()) return;
  std::string text = "the ranks were started with different jobs:";
  for (const std::string& line : lines) text += "\n  " + line;
  throw PeerError(text, "Start every rank with the same program, job and overrides.");
}

}  // namespace lockstep::train
